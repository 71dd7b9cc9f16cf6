// A log in the browser: the last lines first, older ones when scrolled to, new ones as they come.
// It talks to the REST API itself, so that a gigabyte of log costs the page nothing. Lines are only ever text.
const KEPT = 5000;
const PAGE = 500;
const MOMENT = 100; // milliseconds
const CONTROL = /\u001b\[[0-9;?]*[ -/]*[@-~]|\u001b\][^\u0007]*(\u0007|\u001b\\)|[\u0000-\u0008\u000b-\u001f\u007f]/g;

export default {
  template: `
    <div :class="['oarsman-log', wrap ? '' : 'is-unwrapped']">
      <div ref="lines" class="oarsman-log-lines" tabindex="0" role="log" :aria-label="words.label" @scroll.passive="scrolled">
        <div v-if="before" class="oarsman-log-note">{{ words.older }}</div>
        <div v-for="line in lines" :key="line.after" v-memo="[line, stamps]" :class="['oarsman-log-line', line.stream === 'err' ? 'is-err' : '']">
          <span v-if="stamps" class="oarsman-log-tag">{{ line.time.slice(11, 23) }}</span><span class="oarsman-log-tag" :title="line.time">{{ line.tag }}</span><span class="oarsman-log-text">{{ line.shown }}</span>
        </div>
        <div v-for="line in live" :key="line.key" :class="['oarsman-log-line', line.stream === 'err' ? 'is-err' : '']">
          <span v-if="stamps" class="oarsman-log-tag">{{ line.time.slice(11, 23) }}</span><span class="oarsman-log-tag">{{ line.tag }}</span><span class="oarsman-log-text">{{ line.shown }}</span>
        </div>
        <div v-if="!lines.length && !live.length && loaded" class="oarsman-log-note">{{ words.empty }}</div>
        <div v-if="trouble" class="oarsman-log-note is-err">{{ trouble }}</div>
      </div>
      <button v-if="!following" type="button" class="oarsman-log-latest" @click="latest">{{ words.latest }}</button>
    </div>`,
  // `run` names what is read (a job that runs again, a new attempt): when it changes, all is read anew.
  props: { url: String, filter: Object, words: Object, run: String, wrap: Boolean, stamps: Boolean },
  data() {
    return { lines: [], live: [], before: null, after: null, following: true, loaded: false, trouble: "", busy: false, generation: 0 };
  },
  watch: {
    filter: { deep: true, handler() { this.restart(); } },
    url() { this.restart(); },
    run() { if (!this.filter.attempt) this.restart(); },
  },
  mounted() { this.restart(); },
  beforeUnmount() { this.generation++; this.close(); },
  methods: {
    query(more) {
      const found = new URLSearchParams();
      for (const [name, value] of Object.entries({ ...this.filter, ...more })) {
        if (value === null || value === undefined || value === "" || value === false) continue;
        for (const one of Array.isArray(value) ? value : [value]) found.append(name, one);
      }
      return found.toString();
    },
    async page(more) {
      const answer = await fetch(`${this.url}?${this.query({ limit: PAGE, ...more })}`, { credentials: "same-origin" });
      if (!answer.ok) throw new Error((await answer.json().catch(() => ({}))).detail || answer.statusText);
      return await answer.json();
    },
    close() { if (this.source) { this.source.close(); this.source = null; } },
    async restart() {
      const mine = ++this.generation;
      this.close();
      this.coming = [];
      this.begun = null;
      Object.assign(this, { lines: [], live: [], before: null, after: null, following: true, loaded: false, trouble: "" });
      try {
        const found = await this.page({});
        if (mine !== this.generation) return;
        this.before = found.before;
        this.after = found.after;
        this.add(found.lines, found.live);
        this.loaded = true;
        this.stream(mine);
      } catch (error) {
        if (mine === this.generation) this.trouble = error.message;
      }
    },
    stream(mine) {
      this.source = new EventSource(`${this.url}/stream?${this.query({ after: this.after })}`);
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
      setTimeout(() => { if (mine === this.generation) this.add(this.coming.splice(0), this.begun); }, MOMENT);
    },
    // `live`: all lines that have not ended yet, such as progress bars; each takes the place of what it was before.
    add(found, live) {
      if (live) this.live = live.map((line) => ({ ...this.made(line), key: `${line.rank} ${line.stream}` }));
      if (found.length) this.after = found[found.length - 1].after;
      for (const line of found) this.lines.push(this.made(line));
      if (this.following && this.lines.length > KEPT) {
        this.lines.splice(0, this.lines.length - KEPT);
        this.before = this.before || "";
      }
      if (this.following) this.$nextTick(() => { const box = this.$refs.lines; if (box) box.scrollTop = box.scrollHeight; });
    },
    made(line) {
      const tag = line.rank === null || line.rank === undefined ? line.host : `${line.rank} ${line.host}`;
      return Object.freeze({ after: line.after, time: line.time, stream: line.stream, tag, shown: line.text.replace(CONTROL, "") });
    },
    async scrolled() {
      const box = this.$refs.lines;
      this.following = box.scrollHeight - box.scrollTop - box.clientHeight < 40;
      if (box.scrollTop > 200 || this.before === null || this.busy || !this.lines.length) return;
      this.busy = true;
      const mine = this.generation;
      try {
        const place = this.before || this.lines[0].after;
        const found = await this.page({ before: place });
        if (mine !== this.generation) return;
        const height = box.scrollHeight;
        this.lines.unshift(...found.lines.map(this.made));
        this.before = found.before;
        await this.$nextTick();
        box.scrollTop += box.scrollHeight - height;
      } catch (error) {
        this.trouble = error.message;
      } finally {
        this.busy = false;
      }
    },
    latest() { this.restart(); },
  },
};
