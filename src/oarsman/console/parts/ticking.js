// Counts up, in the browser, whatever says since when: elements with data-since, in milliseconds since 1970.
// The server sends nothing for it. Its clock counts, not that of the browser, which may be wrong.
const TWICE_A_SECOND = 500;

// The units are those that the server writes durations with: [from so many seconds on, unit, size of its parts, unit].
function told(seconds, units, words) {
  for (const [size, unit, part, smaller] of units) {
    if (seconds < size) continue;
    const rest = Math.floor((seconds % size) / part);
    return `${Math.floor(seconds / size)}${words[unit]}` + (rest ? `${rest}${words[smaller]}` : "");
  }
  return `${seconds}${words.s}`;
}

export default {
  template: `<span hidden></span>`,
  props: { now: Number, units: Array, words: Object },
  mounted() {
    this.ahead = this.now - Date.now();
    this.timer = setInterval(this.tick, TWICE_A_SECOND);
    this.tick();
  },
  beforeUnmount() { clearInterval(this.timer); },
  methods: {
    tick() {
      for (const place of document.querySelectorAll("[data-since]")) {
        const seconds = Math.max(0, Math.floor((Date.now() + this.ahead - Number(place.dataset.since)) / 1000));
        const text = told(seconds, this.units, this.words).trim();
        if (place.textContent !== text) place.textContent = text;
      }
    },
  },
};
