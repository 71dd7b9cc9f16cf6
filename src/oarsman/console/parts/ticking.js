// Times that go on, in the browser alone: elements with `data-since` count up, those with `data-until` count down, and
// those with `data-ago` say how long ago something was; each has milliseconds since 1970.
// The server sends nothing for it. Its clock counts, not that of the browser, which may be wrong.
const TWICE_A_SECOND = 500;
const MINUTE = 60;

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
      const left = (moment) => (Number(moment) - Date.now() - this.ahead) / 1000;
      const past = (moment) => Math.max(0, Math.floor(-left(moment)));
      const counted = (seconds) => told(seconds, this.units, this.words).trim();
      this.fill("since", (moment) => counted(past(moment)));
      this.fill("until", (moment) => (left(moment) > 0 ? counted(Math.ceil(left(moment))) : this.words.now));
      this.fill("ago", (moment) => this.ago(past(moment)));
    },
    fill(kind, written) {
      for (const place of document.querySelectorAll(`[data-${kind}]`)) {
        const text = written(place.dataset[kind]);
        if (place.textContent !== text) place.textContent = text;
      }
    },
    // One unit is enough, and what is new does not flicker.
    ago(seconds) {
      if (seconds < MINUTE) return this.words.new;
      const [size, unit] = this.units.find(([size]) => seconds >= size);
      return this.words.ago.replace("{time}", `${Math.floor(seconds / size)}${this.words[unit]}`.trim());
    },
  },
};
