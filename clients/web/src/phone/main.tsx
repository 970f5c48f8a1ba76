import "../shared/font.css";
import "../shared/theme.css";
import "./map.css";
import "./phone.css";
import "./list.css";

import { render } from "preact";

import { Phone } from "./phone.js";
import { App } from "./view/app.js";
import { showTheme, storedTheme } from "../shared/theme.js";

showTheme(storedTheme());

const phone = new Phone();
const app = document.getElementById("app");
if (app === null) throw new Error("the page has no place for the app");
render(<App phone={phone} />, app);
void phone.start();
