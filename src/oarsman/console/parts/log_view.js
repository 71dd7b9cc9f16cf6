// A log in the browser: the last lines first, older and newer ones when scrolled to, new ones as they come; and a search.
// It talks to the REST API itself, so that a gigabyte of log costs the page nothing. Lines are only ever text.
const KEPT = 5000; // lines here at the same time
const PAGE = 500;
const AROUND = 250; // lines on either side of a match that is elsewhere
const SCREEN = 60; // lines that fill a window
const COUNTED = 1000; // matches found at a time: the newest ones
const MARKED = 50; // places that are marked in one line
const MOMENT = 100; // milliseconds
const CONTROL = /\u001b\[[0-9;?]*[ -/]*[@-~]|\u001b\][^\u0007]*(\u0007|\u001b\\)|[\u0000-\u0008\u000b-\u001f\u007f]/g;

export default {
  template: `
    <div :class="['oarsman-log', wrap ? '' : 'is-unwrapped']">
      <div v-if="search" class="oarsman-log-find">
        <span role="status">{{ told }}</span>
        <button v-for="[step, icon, label] in steps" :key="step" type="button" :data-step="step" :aria-label="label" :title="label"
          :disabled="!found.length" @click="move(step)"><q-icon :name="icon" aria-hidden="true" /></button>
      </div>
      <div class="oarsman-log-frame">
        <div ref="lines" class="oarsman-log-lines" tabindex="0" role="log" :aria-label="words.label" @scroll.passive="scrolled">
          <div v-if="before !== null" class="oarsman-log-note">{{ lines.length ? words.older : words.searching }}</div>
          <div v-for="line in lines" :key="line.after" v-memo="[line, stamps, sought, line.after === current]" :class="classes(line)">
            <span v-if="stamps" class="oarsman-log-tag">{{ clock(line) }}</span><span class="oarsman-log-tag" :title="utc(line)">{{ line.tag }}</span><span class="oarsman-log-text"><component v-for="(piece, number) in pieces(line.shown)" :key="number" :is="number % 2 ? 'mark' : 'span'">{{ piece }}</component></span>
          </div>
          <div v-for="line in live" :key="line.key" :class="classes(line)">
            <span v-if="stamps" class="oarsman-log-tag">{{ clock(line) }}</span><span class="oarsman-log-tag">{{ line.tag }}</span><span class="oarsman-log-text">{{ line.shown }}</span>
          </div>
          <div v-if="!lines.length && !live.length && loaded && before === null" class="oarsman-log-note">{{ chosen ? words.none : words.empty }}</div>
          <div v-if="trouble" class="oarsman-log-note is-err">{{ trouble }}</div>
        </div>
        <button v-if="!following" type="button" class="oarsman-log-latest" @click="latest">{{ words.latest }}</button>
      </div>
    </div>`,
  // `run` names what is read (a job that runs again, a new attempt): when it changes, all is read anew. `search` is marked and
  // counted; with `only`, lines without it are left out. `at`: the place behind a line that is shown first.
  props: { url: String, filter: Object, search: String, only: Boolean, at: String, words: Object, run: String, wrap: Boolean, stamps: Boolean },
  data() {
    return {
      lines: [], live: [], before: null, after: null, reached: false, following: true, loaded: false, trouble: "", busy: false, generation: 0,
      found: [], more: null, counting: false, counts: 0, current: this.at || null, // places of lines that match, the newest first
    };
  },
  computed: {
    sought() { return this.search ? new RegExp(this.search.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"), "gi") : null; },
    wanted() { return this.only && this.search ? { ...this.filter, search: this.search } : this.filter; },
    chosen() { return Object.keys(this.wanted).some((name) => name !== "attempt" && name !== "run"); },
    steps() { return [[1, "keyboard_arrow_up", this.words.above], [-1, "keyboard_arrow_down", this.words.below]]; },
    told() {
      const place = this.found.indexOf(this.current) + 1;
      if (!this.found.length) return this.counting ? this.words.searching : this.words.none;
      const count = this.found.length.toLocaleString("en") + (this.more === null ? "" : "+");
      return place ? this.words.place.replace("{number}", place.toLocaleString("en")).replace("{count}", count) : count;
    },
  },
  watch: {
    filter(now, before) { if (JSON.stringify(now) !== JSON.stringify(before)) { this.restart(); this.count(); } }, // each change of any brings a new one
    search() { if (this.only) this.restart(); this.count(); },
    only() { this.restart(); },
    run() { if (!this.filter.attempt) { this.restart(); this.count(); } },
  },
  mounted() {
    if (this.current) this.jump(this.current).catch(() => this.restart());
    else this.restart();
    this.count(this.current);
  },
  beforeUnmount() { this.generation++; this.counts++; this.close(); },
  methods: {
    query(more) {
      const asked = new URLSearchParams();
      for (const [name, value] of Object.entries(more)) {
        if (value === null || value === undefined || value === "" || value === false) continue;
        for (const one of Array.isArray(value) ? value : [value]) asked.append(name, one);
      }
      return asked.toString();
    },
    async page(more, filter = this.wanted) {
      const answer = await fetch(`${this.url}?${this.query({ limit: PAGE, ...filter, ...more })}`, { credentials: "same-origin" });
      if (!answer.ok) throw new Error((await answer.json().catch(() => ({}))).detail || answer.statusText);
      return await answer.json();
    },
    close() { if (this.source) { this.source.close(); this.source = null; } },
    // Other lines instead of those that are shown; what was asked for them and comes later is not shown any more.
    begin(shown) {
      this.close();
      this.coming = [];
      this.begun = null;
      Object.assign(this, { lines: [], live: [], before: null, after: null, reached: false, following: true, loaded: false, trouble: "" }, shown);
      return ++this.generation;
    },
    async attempt(mine, work) {
      try {
        await work();
      } catch (error) {
        if (mine === this.generation) this.trouble = error.message;
      }
    },
    async restart() {
      const mine = this.begin({});
      await this.attempt(mine, async () => {
        const found = await this.page({});
        if (mine !== this.generation) return;
        Object.assign(this, { before: found.before, after: found.after, reached: true });
        this.add(found.lines, found.live);
        this.stream(mine);
        await this.older(mine, SCREEN - found.lines.length);
        this.loaded = this.loaded || mine === this.generation;
      });
    },
    // Of a filter, a page may have few lines or none and still have others above it.
    async older(mine, wanted) {
      while (this.before !== null && wanted > 0) {
        const found = await this.page({ before: this.before });
        if (mine !== this.generation) return;
        const box = this.$refs.lines, height = box.scrollHeight;
        this.lines.unshift(...found.lines.map(this.made));
        this.before = found.before;
        wanted -= found.lines.length;
        if (this.lines.length > KEPT && !this.following) this.cut(this.lines.slice(0, KEPT));
        await this.$nextTick();
        box.scrollTop += box.scrollHeight - height;
      }
    },
    cut(kept) {
      this.close();
      this.coming = [];
      Object.assign(this, { lines: kept, live: [], after: kept[kept.length - 1].after, reached: false });
    },
    async newer(mine) {
      for (let found = { lines: [] }; !this.reached && !found.lines.length; ) {
        found = await this.page({ after: this.after });
        if (mine !== this.generation) return;
        if (found.after === this.after) {
          this.reached = true;
          this.stream(mine);
        }
        this.after = found.after;
        this.lines.push(...found.lines.map(this.made));
        this.shorten();
      }
    },
    shorten() {
      const gone = this.lines.splice(0, Math.max(0, this.lines.length - KEPT));
      if (gone.length) this.before = gone[gone.length - 1].after;
    },
    stream(mine) {
      this.close();
      this.source = new EventSource(`${this.url}/stream?${this.query({ ...this.wanted, after: this.after })}`);
      this.source.onmessage = (event) => {
        if (mine !== this.generation) return;
        this.trouble = "";
        const found = JSON.parse(event.data);
        this.gather(found.lines, found.live);
      };
      this.source.addEventListener("end", () => { this.close(); this.gather([], []); });
      this.source.onerror = () => { if (mine === this.generation && this.source) this.trouble = this.words.reconnecting; };
    },
    // What comes within a moment is drawn at once: drawing is what a browser spends its time on.
    gather(found, live) {
      this.coming.push(...found);
      this.begun = live || this.begun;
      if (this.coming.length > found.length) return;
      const mine = this.generation;
      setTimeout(() => {
        if (mine !== this.generation) return;
        const come = this.coming.splice(0);
        this.add(come, this.begun);
        if (this.sought) for (const { text, after } of come) if (text.search(this.sought) >= 0) this.matched(after);
      }, MOMENT);
    },
    // Of a job that goes on writing what is sought, the oldest places are forgotten; they can be found again.
    matched(place) {
      if (!this.found.includes(place)) this.found.unshift(place);
      if (this.found.length > KEPT && !this.counting) this.more = this.found.splice(KEPT - COUNTED)[0];
    },
    // `live`: all lines that have not ended yet, such as progress bars; each takes the place of what it was before.
    add(found, live) {
      if (live) this.live = live.map((line) => ({ ...this.made(line), key: `${line.rank} ${line.stream}` }));
      if (found.length) this.after = found[found.length - 1].after;
      this.lines.push(...found.map(this.made));
      if (this.following) {
        this.shorten();
        this.$nextTick(() => { const box = this.$refs.lines; if (box && this.following) box.scrollTop = box.scrollHeight; });
      } else if (this.lines.length > 2 * KEPT) this.cut(this.lines.slice(0, KEPT)); // nobody looks there
    },
    made(line) {
      const tag = line.rank === null || line.rank === undefined ? line.host : `${line.rank} ${line.host}`;
      return Object.freeze({ after: line.after, time: Date.parse(line.time), stream: line.stream, tag, shown: line.text.replace(CONTROL, "") });
    },
    clock(line) { return oarsman.local(line.time).slice(11); },
    utc(line) { return `${oarsman.utc(line.time)} UTC`; },
    classes(line) { return ["oarsman-log-line", line.stream === "err" ? "is-err" : "", line.after && line.after === this.current ? "is-current" : ""]; },
    // By turns what does not match and what does.
    pieces(text) {
      const pieces = [];
      let from = 0;
      if (this.sought) for (const match of text.matchAll(this.sought)) {
        if (pieces.length >= 2 * MARKED) break;
        pieces.push(text.slice(from, match.index), match[0]);
        from = match.index + match[0].length;
      }
      return [...pieces, text.slice(from)];
    },
    async scrolled() {
      const box = this.$refs.lines;
      const below = box.scrollHeight - box.scrollTop - box.clientHeight;
      this.following = this.reached && below < 40;
      if (this.busy || !this.loaded) return;
      const mine = this.generation;
      this.busy = true;
      await this.attempt(mine, async () => {
        if (box.scrollTop < 200) await this.older(mine, 1);
        if (below < 200) await this.newer(mine);
      });
      this.busy = false;
    },
    latest() {
      this.current = null;
      oarsman.query({ at: null });
      return this.restart();
    },
    // -- matches ---------------------------------------------------------------------------------
    // The newest ones, from the end of the log upwards; the newest of all is shown unless another one is.
    async count(current = null) {
      const mine = ++this.counts;
      Object.assign(this, { found: [], more: undefined, counting: false, current });
      if (!current && this.loaded) oarsman.query({ at: null });
      if (this.search) await this.seek(mine, COUNTED);
    },
    // The server looks at a bounded part of the log at a time.
    async seek(mine, wanted) {
      this.counting = true;
      try {
        while (this.found.length < wanted && this.more !== null) {
          const found = await this.page({ before: this.more, limit: COUNTED }, { ...this.filter, search: this.search });
          if (mine !== this.counts) return;
          this.more = found.before;
          const known = new Set(this.found);
          this.found.push(...found.lines.map((line) => line.after).filter((place) => !known.has(place)).reverse());
          if (!this.current && !known.size && this.found.length) await this.jump(this.found[0]);
        }
      } catch (error) {
        if (mine === this.counts) this.trouble = error.message;
      } finally {
        if (mine === this.counts) this.counting = false;
      }
    },
    async move(step) {
      let next = this.found.indexOf(this.current) + step;
      if (next >= this.found.length && this.more !== null && !this.counting) await this.seek(this.counts, this.found.length + COUNTED);
      const count = this.found.length;
      if (count) await this.jump(this.found[(next + count) % count]);
    },
    async jump(place) {
      this.current = place;
      oarsman.query({ at: place });
      if (!this.lines.some((line) => line.after === place)) await this.around(place);
      await this.$nextTick();
      const box = this.$refs.lines, line = box && box.querySelector(".is-current");
      if (!line) return;
      this.following = false;
      box.scrollTop = line.offsetTop - box.clientHeight / 2;
    },
    async around(place) {
      const mine = this.begin({ following: false });
      const [above, below] = await Promise.all([this.page({ before: place, limit: AROUND }), this.page({ after: place, limit: AROUND })]);
      if (mine !== this.generation) return;
      const lines = [...above.lines, ...below.lines].map(this.made);
      Object.assign(this, { lines, before: above.before, after: below.after });
      await this.older(mine, SCREEN - lines.length);
      if (lines.length < SCREEN) await this.newer(mine);
      this.loaded = this.loaded || mine === this.generation;
    },
  },
};
