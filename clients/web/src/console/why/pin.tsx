// A mark of an answer on the map: what it is, and what it is called.

import { MapPin, Smartphone } from "lucide";
import { render } from "preact";

import { Icon } from "../../shared/icon.js";
import type { Pin } from "./drawing.js";

/** The element of a pin; its middle is the place. */
export function pinElement({ kind, name, side, holds }: Pin): HTMLElement {
  const element = document.createElement("div");
  // The panel says the same in words.
  element.setAttribute("aria-hidden", "true");
  element.className = `why-pin ${kind} ${side} ${holds ? "good" : "bad"}`;
  render(
    <>
      <span class="dot">
        <Icon of={kind === "event" ? MapPin : Smartphone} size={14} />
      </span>
      <span class="card">
        <span class="quiet">{kind}</span>{" "}
        <strong>
          <bdi>{name}</bdi>
        </strong>
      </span>
    </>,
    element,
  );
  return element;
}
