// A mark of an answer on the map: what it is, what it is called, and its conditions with ticks and crosses.

import { Check, CircleQuestionMark, MapPin, Smartphone, X } from "lucide";
import { render } from "preact";

import { Icon } from "../../shared/icon.js";
import type { Pin } from "./drawing.js";

const MARKS = { yes: Check, no: X, unknown: CircleQuestionMark };

/** The element of a pin; its middle is the place. */
export function pinElement(pin: Pin): HTMLElement {
  const element = document.createElement("div");
  // The panel says the same in words.
  element.setAttribute("aria-hidden", "true");
  element.className = `why-pin ${pin.kind} ${pin.side} ${pin.holds ? "good" : "bad"}`;
  render(<Words {...pin} />, element);
  return element;
}

function Words({ kind, name, rows }: Pin) {
  return (
    <>
      <span class="dot">
        <Icon of={kind === "event" ? MapPin : Smartphone} size={14} />
      </span>
      <div class="card">
        <span>
          <span class="quiet">{kind}</span>{" "}
          <strong>
            <bdi>{name}</bdi>
          </strong>
        </span>
        {rows.length > 0 && (
          <ul>
            {rows.map(({ mark, text }) => (
              <li key={text} class={mark}>
                <Icon of={MARKS[mark]} size={14} />
                <bdi>{text}</bdi>
              </li>
            ))}
          </ul>
        )}
      </div>
    </>
  );
}
