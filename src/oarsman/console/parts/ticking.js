// Counts up, in the browser, whatever says since when: elements with data-since, in milliseconds since 1970.
// The server sends nothing for it. Its clock counts, not that of the browser, which may be wrong.
const TWICE_A_SECOND = 500;

function told(seconds) {
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  const hours = Math.floor(minutes / 60);
  const days = Math.floor(hours / 24);
  if (days) return `${days} d ${hours % 24} h`;
  return hours ? `${hours} h ${minutes % 60} min` : `${minutes} min ${seconds % 60} s`;
}

export default {
  template: `<span hidden></span>`,
  props: { now: Number },
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
        const text = told(seconds);
        if (place.textContent !== text) place.textContent = text;
      }
    },
  },
};
