// Lines over time or over steps, several charts below one another. Points are handed over as they come and kept here, so that a
// job of many hours costs the server nothing per look. What is drawn is also said: the newest values are each chart's label.
import { echarts } from "nicegui-echart";

const COLOURS = ["#2f8fbf", "#d9822b", "#3a9d6a", "#b05fc6", "#c94f4f", "#8a9a2f", "#5f7fe0", "#a0714a", "#2aa5a0", "#d05a94"];
const NAMED = 8; // lines that a tooltip or a label tells one by one
const KEPT = 5000; // points of a line

const BINARY = ["B", "KiB", "MiB", "GiB", "TiB"];
function size(value) {
  let unit = 0;
  while (Math.abs(value) >= 1024 && unit < BINARY.length - 1) { value /= 1024; unit++; }
  return `${Number(value.toPrecision(3))} ${BINARY[unit]}`;
}
const SHOWN = {
  percent: (value) => `${Number(value.toFixed(1))} %`,
  bytes: size,
  rate: (value) => `${size(value)}/s`,
  number: (value) => String(Number(value.toPrecision(5))),
};
const DAY = 86400000;
// Of a job that lasted a moment: without it a single point is drawn in the middle of two days.
const SHORTEST = 10000;
const STRETCHED = {
  min: ({ min, max }) => Math.min(min, (min + max - SHORTEST) / 2),
  max: ({ min, max }) => Math.max(max, (min + max + SHORTEST) / 2),
};
const clock = (milliseconds, days) => oarsman.local(milliseconds).slice(...(days ? [5, 16] : [11, 19]));

export default {
  template: `
    <div class="oarsman-charts">
      <figure v-for="panel in panels" :key="panel.id" class="oarsman-card oarsman-chart">
        <figcaption><span class="oarsman-h3">{{ panel.title }}</span><span class="oarsman-note">{{ panel.newest }}</span></figcaption>
        <div class="oarsman-chart-ground" :data-panel="panel.id" role="img" :aria-label="panel.title + ': ' + panel.newest"></div>
      </figure>
      <div v-if="!panels.length" class="oarsman-card oarsman-note" role="status">{{ words.empty }}</div>
    </div>`,
  props: { words: Object },
  data() { return { panels: [] }; },
  created() {
    this.kept = new Map(); // panel -> { unit, x, lines: name -> points }; not reactive: there may be a hundred thousand points
    this.charts = new Map();
  },
  mounted() {
    this.theme = new MutationObserver(() => this.panels.forEach(this.draw));
    this.theme.observe(document.body, { attributes: true, attributeFilter: ["class"] });
    this.sizes = new ResizeObserver(() => this.charts.forEach((chart) => chart.resize()));
    this.sizes.observe(this.$el);
    this.$emit("ready");
  },
  beforeUnmount() {
    this.theme.disconnect();
    this.sizes.disconnect();
    this.charts.forEach((chart) => chart.dispose());
  },
  methods: {
    clear() {
      this.charts.forEach((chart) => chart.dispose());
      this.charts.clear();
      this.kept.clear();
      this.panels = [];
    },
    // [{ id, title, unit, x, lines: { name: [[x, y], ...] } }]; `whole`: instead of what was known, else after it
    add(found, whole) {
      if (whole && this.panels.some((panel) => !found.find((one) => one.id === panel.id))) this.clear();
      for (const { id, title, unit, x, lines } of found) {
        let kept = this.kept.get(id);
        if (!kept) {
          this.kept.set(id, (kept = { unit, x, lines: new Map() }));
          this.panels.push({ id, title, newest: "" });
        }
        if (whole) Object.assign(kept, { x, lines: new Map() });
        const known = kept.lines.size;
        for (const [name, points] of Object.entries(lines)) {
          const line = [...(kept.lines.get(name) || []), ...points];
          kept.lines.set(name, line.length > KEPT ? line.slice(-KEPT) : line);
        }
        // By name, whichever host was measured first.
        if (kept.lines.size > known) kept.lines = new Map([...kept.lines].sort(([a], [b]) => a.localeCompare(b, "en", { numeric: true })));
        const panel = this.panels.find((one) => one.id === id);
        panel.newest = this.newest(kept);
        this.$nextTick(() => this.draw(panel));
      }
    },
    newest({ unit, lines }) {
      const last = [...lines].filter(([, points]) => points.length)
        .map(([name, points]) => (name ? `${name} ` : "") + SHOWN[unit](points[points.length - 1][1]));
      return last.slice(0, NAMED).join(", ") + (last.length > NAMED ? ` … +${last.length - NAMED}` : "");
    },
    draw(panel) {
      const kept = this.kept.get(panel.id);
      const ground = this.$el.querySelector(`[data-panel="${CSS.escape(panel.id)}"]`);
      if (!kept || !ground) return;
      if (!this.charts.has(panel.id)) this.charts.set(panel.id, echarts.init(ground));
      this.charts.get(panel.id).setOption(this.options(kept), { notMerge: false, replaceMerge: ["series"] });
    },
    options({ unit, x, lines }) {
      const style = getComputedStyle(document.body);
      const [quiet, rule, card] = ["--quiet", "--line", "--card"].map((name) => style.getPropertyValue(name).trim());
      const axis = { axisLabel: { color: quiet }, axisLine: { lineStyle: { color: rule } }, splitLine: { lineStyle: { color: rule } } };
      const many = lines.size > 1;
      const days = [...lines.values()].some((points) => points.length && points[points.length - 1][0] - points[0][0] > DAY);
      return {
        animation: false,
        color: COLOURS,
        grid: { left: 8, right: 36, top: many ? 40 : 16, bottom: 8, containLabel: true },
        legend: { show: many, type: "scroll", top: 0, icon: "circle", itemWidth: 10, itemHeight: 10, textStyle: { color: quiet }, pageTextStyle: { color: quiet },
          pageIconColor: quiet, pageIconInactiveColor: rule },
        tooltip: { trigger: "axis", confine: true, backgroundColor: card, borderColor: rule, formatter: (found) => this.told(found, unit, x) },
        xAxis: { type: x === "time" ? "time" : "value", scale: true, ...(x === "time" ? STRETCHED : {}), ...axis, splitLine: { show: false },
          axisLabel: { color: quiet, hideOverlap: true, ...(x === "time" ? { formatter: (at) => clock(at, days) } : {}) } },
        yAxis: { type: "value", ...(unit === "number" ? { scale: true } : { min: 0 }), ...this.steps(unit, lines), ...axis,
          axisLabel: { color: quiet, formatter: (value) => SHOWN[unit](value) } },
        series: [...lines].map(([name, data]) => ({
          id: name, name: name || " ", type: "line", data, sampling: "lttb", symbolSize: 5, showSymbol: data.length < 3,
          lineStyle: { width: lines.size > 12 ? 1 : 2 },
        })),
      };
    },
    // Amounts of bytes are read in powers of two: 16 MiB, 32 MiB, not 19.1.
    steps(unit, lines) {
      if (unit !== "bytes" && unit !== "rate") return {};
      let top = 1;
      for (const points of lines.values()) for (const [, value] of points) top = Math.max(top, value);
      const interval = 2 ** Math.ceil(Math.log2(top / 4));
      return { interval, max: Math.ceil(top / interval) * interval };
    },
    // The largest few; names come from jobs, so they are only ever text.
    told(found, unit, x) {
      const box = document.createElement("div");
      box.className = "oarsman-chart-told";
      const row = (text, colour) => {
        const line = box.appendChild(document.createElement("div"));
        if (colour) line.appendChild(Object.assign(document.createElement("i"), { className: "oarsman-chart-mark" })).style.background = colour;
        line.append(text);
      };
      const at = found[0].value[0];
      row(x === "time" ? `${clock(at)} (${oarsman.utc(at).slice(11, 19)} UTC)` : `${this.words.step} ${at}`);
      const largest = [...found].sort((a, b) => b.value[1] - a.value[1]);
      for (const one of largest.slice(0, NAMED)) row(`${one.seriesName.trim()} ${SHOWN[unit](one.value[1])}`, one.color);
      if (largest.length > NAMED) row(this.words.more.replace("{count}", largest.length - NAMED));
      return box;
    },
  },
};
