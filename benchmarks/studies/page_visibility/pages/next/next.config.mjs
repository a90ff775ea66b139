import { resolve } from "node:path";

export default {
  output: "export",
  basePath: "/next",
  turbopack: { root: resolve("../..") },
};
