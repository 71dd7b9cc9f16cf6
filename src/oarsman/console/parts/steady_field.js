import Input from "nicegui-elements/input.js";

// A value of the server's is taken only if it was said in the knowledge of all that was typed here: letters are never
// overwritten by an older answer. The server hears of them next, and then says what they amount to.
export default {
  ...Input,
  props: { ...Input.props, known: Number },
  data() {
    return { ...Input.data.call(this), edits: this.known };
  },
  watch: {
    value() {
      this.updateValue();
    },
    inputValue(text) {
      if (!this.emitting) return;
      this.edits += 1;
      this.$emit("update:value", { text, edits: this.edits });
    },
  },
  methods: {
    ...Input.methods,
    updateValue() {
      const typed = this.$refs.qRef.getNativeElement().value;
      if (this.known < this.edits || typed !== (this.inputValue ?? "")) return; // the latter: not told yet
      this.emitting = false;
      this.inputValue = this.value;
      this.$nextTick(() => (this.emitting = true));
    },
  },
};
