const plugin = require("tailwindcss3/plugin");

module.exports = {
  content: ["./pages/tailwind3/*.mjs"],
  important: "#app",
  darkMode: ["class", "[data-theme=night]"],
  theme: { extend: { screens: { tall: { raw: "(min-height: 820px)" }, between: { min: "700px", max: "1100px" } } } },
  plugins: [plugin(({ addVariant }) => {
    addVariant("expanded", "&[aria-expanded=true]");
    addVariant("no-js", ".no-js &");
    addVariant("touch", "@media (hover: none)");
  })],
};
