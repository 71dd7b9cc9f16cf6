import Editor from "nicegui-elements/codemirror/codemirror.js";

// A text of the server's is taken only if it was made from all that was typed here: letters are never overwritten by the
// answer to an older text. What is passed over comes again, because the server has yet to answer the newer text.
// Its colours are those of the page, light or dark.
export default {
  ...Editor,
  props: { ...Editor.props, known: Number, version: Number, label: String },
  data() {
    return { ...Editor.data.call(this), edits: this.known, seen: this.version };
  },
  async mounted() {
    await Editor.mounted.call(this);
    this.editor.contentDOM.setAttribute("aria-label", this.label);
    this.editor.contentDOM.tabIndex = 0;
    this.colours = new MutationObserver(this.recolour);
    this.colours.observe(document.body, { attributes: true, attributeFilter: ["class"] });
    this.recolour();
  },
  beforeUnmount() {
    this.colours?.disconnect();
    Editor.beforeUnmount.call(this);
  },
  methods: {
    ...Editor.methods,
    recolour() {
      const wanted = document.body.classList.contains("body--dark") ? "githubDark" : "githubLight";
      if (wanted !== this.coloured) this.setTheme((this.coloured = wanted));
    },
    setEditorValueFromProps() {
      if (this.known < this.edits) return;
      this.seen = this.version;
      Editor.methods.setEditorValueFromProps.call(this);
    },
    // What changed is said with the whole text, because the server's may be another one by now.
    setupExtensions() {
      const tell = (event, details) => {
        if (event !== "update:value") return this.$emit(event, details);
        this.edits += 1;
        this.$emit(event, { text: this.editor.state.doc.toString(), edits: this.edits, seen: this.seen });
      };
      const speaking = new Proxy(this, { get: (it, name) => (name === "$emit" ? tell : it[name]) });
      return Editor.methods.setupExtensions.call(speaking);
    },
  },
};
