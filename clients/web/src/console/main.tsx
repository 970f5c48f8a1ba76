import "../shared/font.css";
import "../shared/theme.css";
import "./console.css";
import "./map/map.css";
import "./map/layers.css";
import "./panel.css";
import "./situations/situations.css";
import "./live/live.css";
import "./try/try.css";
import "./why/why.css";
import "./map/time.css";
import "./narrow.css";

import { render } from "preact";

import { pageSettings, type PageSettings } from "../shared/pages.js";
import { App } from "./app.js";
import { ConsoleProvider } from "./context.js";
import { Console } from "./model.js";
import { reasonOf } from "./access.js";
import { showTheme, storedTheme } from "../shared/theme.js";

showTheme(storedTheme());

const AGAIN_MS = 2000;
const app = document.getElementById("app");

/** Until the broker says what it is a word stands in the frame that the page came with. */
async function settings(): Promise<PageSettings> {
  for (;;) {
    try {
      return await pageSettings();
    } catch (error) {
      if (app !== null) render(<Waiting why={reasonOf(error)} />, app);
      await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
    }
  }
}

function Waiting({ why }: { readonly why: string }) {
  return (
    <div class="console">
      <header class="bar">
        <h1>nearcast</h1>
        <p role="status" class="link lost">
          <span class="mark" aria-hidden="true" />
          <span>Waiting for the broker: {why}</span>
        </p>
      </header>
      <main class="map" />
      <aside class="panel" />
    </div>
  );
}

if (app !== null) {
  const console = new Console(await settings());
  render(
    <ConsoleProvider value={console}>
      <App />
    </ConsoleProvider>,
    app,
  );
}
