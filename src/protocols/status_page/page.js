// Takes the tables anew every two seconds, and draws the last ten minutes of what is in them.
"use strict";
const PERIOD = 2000, KEPT = 300;
const state = document.getElementById("state"), charts = document.getElementById("charts");
const looks = [];
let paused = false;

// The sum of a column of a table; 0 without the table.
function sum(tables, thing, column) {
    const table = tables.querySelector(`section[aria-labelledby=${thing}]`);
    const cells = table ? [...table.querySelectorAll(`[data-${column}]`)] : [];
    return cells.reduce((all, cell) => all + Number(cell.getAttribute(`data-${column}`)), 0);
}

function look(tables) {
    return {
        time: Date.now(),
        workers: tables.querySelectorAll("section[aria-labelledby=workers] tbody tr").length,
        connections: sum(tables, "workers", "connections"),
        accepts: sum(tables, "daemon", "accepts"),
        received: sum(tables, "listens", "received"),
        sent: sum(tables, "listens", "sent"),
    };
}

// How much of a counter came in a second, at each look but the first.
function rates(column) {
    return looks.slice(1).map((now, i) => Math.max(0,
        (now[column] - looks[i][column]) * 1000 / Math.max(1, now.time - looks[i].time)));
}

function short(n) {
    const units = ["", "k", "M", "G", "T"];
    let unit = 0;
    for (; n >= 1000 && unit < units.length - 1; unit++)
        n /= 1000;
    return (n < 10 && n % 1 ? n.toFixed(1) : Math.round(n)) + (unit ? " " + units[unit] : "");
}

// A chart of one or two lines, which the page has from its first drawing on.
const drawings = [
    ["Connections", () => [looks.map(at => at.connections)], ""],
    ["Workers", () => [looks.map(at => at.workers)], ""],
    ["Clients accepted, a second", () => [rates("accepts")], ""],
    ["Bytes received and (dashed) sent, a second", () => [rates("received"), rates("sent")], "B"],
].map(([title, lines, unit]) => {
    const figure = charts.appendChild(document.createElement("figure"));
    const caption = figure.appendChild(document.createElement("figcaption"));
    const svg = figure.appendChild(document.createElementNS("http://www.w3.org/2000/svg", "svg"));
    svg.setAttribute("role", "img");
    svg.setAttribute("viewBox", `0 0 ${KEPT - 1} 100`);
    svg.setAttribute("preserveAspectRatio", "none");
    return () => {
        const all = lines(), most = Math.max(1, ...all.flat());
        const text = `${title}: ${all.map(line => short(line.at(-1) ?? 0) + unit).join(", ")}; ` +
            `at most ${short(most)}${unit} in ${Math.ceil(looks.length * PERIOD / 60000)} min`;
        caption.textContent = text;
        svg.setAttribute("aria-label", text);
        svg.replaceChildren(...all.map((line, which) => {
            const drawn = document.createElementNS("http://www.w3.org/2000/svg", "polyline");
            drawn.setAttribute("points", line.map((value, i) =>
                `${KEPT - line.length + i},${98 - 96 * value / most}`).join(" "));
            drawn.setAttribute("class", which ? "second" : "first");
            return drawn;
        }));
    };
});

function take(tables) {
    looks.push(look(tables));
    if (looks.length > KEPT)
        looks.shift();
    drawings.forEach(draw => draw());
}

async function renew() {
    if (!paused)
        try {
            const reply = await fetch("./", { cache: "no-store", signal: AbortSignal.timeout(10000) });
            if (!reply.ok)
                throw new Error(`status ${reply.status}`);
            const page = new DOMParser().parseFromString(await reply.text(), "text/html");
            const tables = page.querySelector("main");
            take(tables);
            if (!document.getSelection().toString()) // nobody copies from the tables now
                document.querySelector("main").replaceChildren(...tables.children);
            said.textContent = `As of ${new Date().toLocaleTimeString()}. `;
            said.className = "";
        } catch (error) {
            said.textContent = `No reply since the last one was shown (${error.message}). `;
            said.className = "late";
        }
    setTimeout(renew, PERIOD);
}

const button = document.createElement("button"), said = document.createElement("span");
button.textContent = "Pause";
button.addEventListener("click", () => {
    paused = !paused;
    button.textContent = paused ? "Go on" : "Pause";
});
state.firstChild.replaceWith(said, "The same numbers: ");
state.append(" ", button);
document.title = `forkbeard, ${location.host}`;
take(document.querySelector("main"));
setTimeout(renew, PERIOD);
