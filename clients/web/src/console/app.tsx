// The frame: a bar, the map, and a panel with tabs or what was opened.

import { useSignal } from "@preact/signals";
import {
  Activity,
  ArrowLeft,
  ArrowRight,
  BookOpen,
  FlaskConical,
  Group,
  History,
  Monitor,
  Moon,
  ShieldCheck,
  Smartphone,
  Sun,
  Users,
  Workflow,
  type IconNode,
} from "lucide";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";

import { Icon } from "../shared/icon.js";
import { showTheme, storedTheme, THEMES } from "../shared/theme.js";

import { ClientDetail } from "./clients/client.js";
import { ClientsTab } from "./clients/clients.js";
import { useConsole } from "./context.js";
import { LiveTab } from "./live/tab.js";
import { MapPart } from "./map/map.js";
import type { Detail, Tab } from "./model.js";
import { Search } from "./search.js";
import { Grip, height, raise } from "./sheet.js";
import { NOUNS } from "./situations/list.js";
import { FindingSteps } from "./situations/steps.js";
import { PAGES } from "./situations/pages.js";
import { TokenDialog } from "./token/dialog.js";
import { TryTab } from "./try/tab.js";
import { ChoiceDetail } from "./why/choice.js";
import { EventDetail } from "./why/event.js";
import { EventName } from "./why/name.js";

const TABS: readonly (readonly [Tab, string, IconNode])[] = [
  ["live", "Live", Activity],
  ["clients", "Clients", Users],
  ["checks", "Checks", ShieldCheck],
  ["rules", "Rules", Workflow],
  ["groups", "Groups", Group],
  ["try", "Try", FlaskConical],
];

export function App() {
  const { details } = useConsole();
  const detail = details.value.at(-1);
  useEffect(() => {
    if (detail !== undefined) raise();
  }, [detail]);
  return (
    <div class="console" data-sheet={height.value}>
      <Bar />
      <main class="map">
        <MapPart />
      </main>
      <aside class="panel" id="views" aria-label="Panel">
        <Grip />
        <Tabs />
        {detail === undefined ? <Panel /> : <Opened key={details.value.length} detail={detail} />}
      </aside>
      <TokenDialog />
    </div>
  );
}

const LINKS = { connecting: "Connecting", ready: "Connected", lost: "Connection lost", refused: "Not permitted" };

function Bar() {
  const { live, settings, access } = useConsole();
  const { state, why } = live.link.value;
  const { sub } = access.claims.value ?? {};
  return (
    <header class="bar">
      <h1>
        <img src="./assets/icon.svg" alt="" width="24" height="24" /> nearcast
      </h1>
      <p role="status" class={`link ${state}`} data-state={state} title={why}>
        <span class="mark" aria-hidden="true" />
        <span>
          {LINKS[state]}
          {why !== undefined && state !== "ready" && <span class="reason">: {why}</span>}
        </span>
      </p>
      {settings.notice && (
        <p class="notice-tag" title="All that is shown here">
          <Icon of={History} size={15} /> <bdi>{settings.notice}</bdi>
        </p>
      )}
      <Search />
      <nav class="links" aria-label="Elsewhere">
        <a href="docs" target="_blank" rel="noopener">
          <Icon of={BookOpen} /> API docs
        </a>
        <a href="phone" target="_blank" rel="noopener">
          <Icon of={Smartphone} /> Phone page
        </a>
      </nav>
      <ThemeSwitch />
      {(settings.tokens || access.token.value !== undefined) && (
        <button type="button" onClick={() => access.ask()}>
          {access.token.value === undefined ? "Enter a token" : sub === undefined ? "Token" : "Token: "}
          {sub !== undefined && <bdi>{sub}</bdi>}
        </button>
      )}
    </header>
  );
}

const THEME_WORDS = { system: [Monitor, "System theme"], light: [Sun, "Light theme"], dark: [Moon, "Dark theme"] } as const;

function ThemeSwitch() {
  const theme = useSignal(storedTheme());
  const [sign, words] = THEME_WORDS[theme.value];
  const next = THEMES[(THEMES.indexOf(theme.value) + 1) % THEMES.length] ?? "system";
  return (
    <button
      type="button"
      class="icon"
      title={`${words}; click for: ${THEME_WORDS[next][1].toLowerCase()}`}
      aria-label={`${words}, change`}
      onClick={() => {
        theme.value = next;
        showTheme(next);
      }}
    >
      <Icon of={sign} size={18} />
    </button>
  );
}

function Tabs() {
  const console = useConsole();
  const { tab, details, live } = console;
  const violations = live.violations.lately.value;
  const list = useRef<HTMLDivElement>(null);
  const step = (by: number): void => {
    const at = TABS.findIndex(([name]) => name === tab.value);
    const [next] = TABS[(at + by + TABS.length) % TABS.length] ?? ["live"];
    console.go(next);
    list.current?.querySelector<HTMLElement>(`#tab-${next}`)?.focus();
  };
  return (
    <div
      class="tabs"
      role="tablist"
      aria-label="Views"
      ref={list}
      onKeyDown={(event) => {
        if (event.key === "ArrowRight") step(1);
        else if (event.key === "ArrowLeft") step(-1);
      }}
    >
      {TABS.map(([name, label, icon]) => (
        <button
          key={name}
          type="button"
          role="tab"
          id={`tab-${name}`}
          aria-selected={tab.value === name}
          aria-controls={tab.value === name && details.value.length === 0 ? "panel" : undefined}
          tabIndex={tab.value === name ? 0 : -1}
          onClick={() => {
            raise();
            console.go(name);
          }}
        >
          <Icon of={icon} size={18} />
          {label}
          {name === "checks" && violations > 0 && (
            <span class="badge numbers" title="Violations in the last minute" data-lately={violations}>
              {violations > 99 ? "99+" : violations}
              <span class="visually-hidden"> violations in the last minute</span>
            </span>
          )}
        </button>
      ))}
    </div>
  );
}

function Panel() {
  const { tab } = useConsole();
  return (
    <div class="content" id="panel" role="tabpanel" aria-labelledby={`tab-${tab.value}`} tabIndex={-1}>
      <TabBody tab={tab.value} />
    </div>
  );
}

function TabBody({ tab }: { readonly tab: Tab }) {
  switch (tab) {
    case "live":
      return <LiveTab />;
    case "clients":
      return <ClientsTab />;
    case "try":
      return <TryTab />;
    default: {
      const { Tab } = PAGES[tab];
      return <Tab />;
    }
  }
}

function Opened({ detail }: { readonly detail: Detail }) {
  const console = useConsole();
  const heading = useRef<HTMLHeadingElement>(null);
  // Before it is painted: a field that somebody types in by then would lose the focus.
  useLayoutEffect(() => heading.current?.focus(), []);
  const back = (): void => {
    console.back();
    const to = console.byKeys && console.details.peek().length === 0 ? ".walker" : "#panel, .opened h2";
    requestAnimationFrame(() => document.querySelector<HTMLElement>(to)?.focus());
  };
  return (
    <section
      class="content opened"
      aria-labelledby="opened"
      onKeyDown={(event) => {
        if (event.key === "Escape" && !event.defaultPrevented) back();
      }}
    >
      <div class="title">
        <button type="button" onClick={back}>
          <Icon of={ArrowLeft} /> Back
        </button>
        <h2 id="opened" tabIndex={-1} ref={heading}>
          <Heading detail={detail} />
        </h2>
        {/* The buttons stay, and keep the focus, while another finding takes the place of this one. */}
        {detail.kind === "finding" && <FindingSteps of={console[detail.of]} name={detail.name} id={detail.id} />}
      </div>
      <Body detail={detail} />
    </section>
  );
}

function Heading({ detail }: { readonly detail: Detail }) {
  switch (detail.kind) {
    case "event":
      if (detail.why === undefined) return <EventName feature={detail.feature} />;
      return (
        <>
          <span class="party">
            <small class="quiet">event</small> <EventName feature={detail.feature} />
          </span>{" "}
          <Icon of={ArrowRight} /> <span class="visually-hidden">to</span>{" "}
          <span class="party">
            <small class="quiet">client</small> <bdi>{detail.why}</bdi>
          </span>
        </>
      );
    case "client":
      return <bdi>{detail.client}</bdi>;
    case "situation":
      return (
        <>
          {PAGES[detail.of].title} <bdi>{detail.name}</bdi>
        </>
      );
    case "finding":
      return <>{PAGES[detail.of].found(detail.name)}</>;
    case "edit":
      return (
        <>
          {detail.name === undefined ? "New" : "Edit"} {NOUNS[detail.of]} <bdi>{detail.name}</bdi>
        </>
      );
    case "sought":
      return <bdi>{detail.id}</bdi>;
    case "choice":
      return <>Choose one of {detail.events.length + detail.clients.length}</>;
  }
}

function Body({ detail }: { readonly detail: Detail }) {
  switch (detail.kind) {
    case "event":
      return <EventDetail feature={detail.feature} why={detail.why} />;
    case "client":
      return <ClientDetail client={detail.client} />;
    case "situation":
    case "finding":
    case "edit":
      return <SituationBody detail={detail} />;
    case "sought":
      return (
        <p class="quiet">
          This event has not come since the page was opened. It is shown as soon as it, or a newer one of its object, comes.
        </p>
      );
    case "choice":
      return <ChoiceDetail detail={detail} />;
  }
}

function SituationBody({ detail }: { readonly detail: Extract<Detail, { readonly of: unknown }> }) {
  const { Detail: One, Finding, Edit } = PAGES[detail.of];
  if (detail.kind === "situation") return <One name={detail.name} />;
  return detail.kind === "finding" ? <Finding name={detail.name} id={detail.id} /> : <Edit name={detail.name} />;
}
