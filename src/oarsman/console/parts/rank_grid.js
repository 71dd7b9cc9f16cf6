// A small cell per rank, in the order of hosts: one component however many ranks there are. One stop of the Tab key; arrows go on.
export default {
  template: `
    <div class="oarsman-grid" role="group" :aria-label="words.label" @keydown="moved">
      <div v-for="group in groups" :key="group.host" class="oarsman-grid-host">
        <div class="oarsman-note oarsman-grid-name" :title="group.host">{{ group.host || words.nowhere }}</div>
        <div class="oarsman-grid-cells">
          <button v-for="cell in group.cells" :key="cell.rank" type="button" :data-rank="cell.rank"
            :class="['oarsman-cell', 'is-' + cell.state, cell.behind ? 'is-behind' : '']" :title="told(group, cell)"
            :aria-label="told(group, cell)" :tabindex="cell.rank === at ? 0 : -1" @focus="at = cell.rank"
            @click="$emit('pick', cell.rank)">{{ cell.rank }}</button>
        </div>
      </div>
    </div>`,
  props: { groups: Array, words: Object },
  data() { return { at: null }; },
  created() { this.begin(); },
  watch: { groups() { this.begin(); } },
  methods: {
    begin() {
      const all = this.groups.flatMap((group) => group.cells);
      if (!all.some((cell) => cell.rank === this.at)) this.at = all.length ? all[0].rank : null;
    },
    told(group, cell) {
      const parts = [`${this.words.rank} ${cell.rank}`, group.host, this.words[cell.state], cell.note];
      if (cell.behind) parts.push(cell.behind);
      return parts.filter(Boolean).join(" · ");
    },
    moved(event) {
      const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      if (!step) return;
      event.preventDefault();
      const cells = [...this.$el.querySelectorAll("button")];
      const next = cells[cells.indexOf(document.activeElement) + step];
      if (next) next.focus();
    },
  },
};
