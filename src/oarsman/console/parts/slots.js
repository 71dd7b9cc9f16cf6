// What a machine has, as squares: each is coloured by who holds how much of it. Names are only ever text.
export default {
  template: `
    <div class="oarsman-slots" role="img" :aria-label="label">
      <div :class="['oarsman-slots-cells', wide ? 'is-wide' : '']">
        <div v-for="(cell, number) in cells" :key="number" class="oarsman-slot" :style="{ background: painted(cell) }"
             :title="cell.map(([who]) => holders[who].name).join(', ')"></div>
      </div>
      <div v-if="used !== null" class="oarsman-slots-used"><div :style="{ width: 100 * used + '%' }"></div></div>
    </div>`,
  props: { label: String, cells: Array, holders: Array, used: { type: Number, default: null }, wide: Boolean },
  methods: {
    painted(cell) {
      let from = 0;
      const stops = cell.map(([who, share]) => {
        const begin = from;
        from += 100 * share;
        return `var(--${this.holders[who].colour}) ${begin}% ${from}%`;
      });
      return `linear-gradient(to right, ${stops.join(", ")})`;
    },
  },
};
