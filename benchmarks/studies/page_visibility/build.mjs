// node build.mjs CHROMIUM [FRAMEWORK ...], in a folder with this study's files and node_modules.
//
//   pages/FRAMEWORK/PAGE.mjs|jsx ─► site/ (as a shop serves it) ─► Chromium runs its scripts and `acts` ─► built/FRAMEWORK/PAGE.html.gz
//
// A page module's default export is the page: HTML for most frameworks, a React component for Material UI. It may export
// `acts`, what a visitor does before the page is saved ([selector, "click" | "hover" | text to type | key as "<Key>"]), `phone`
// (saved on a phone), `served` (saved as the server sends it), and `client` (Material UI: rendered in the browser).

import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { basename, extname, join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";
import { chromium } from "playwright-core";

const [browserPath, ...chosen] = process.argv.slice(2);
const TYPES = { ".html": "text/html; charset=utf-8", ".css": "text/css", ".js": "text/javascript", ".json": "application/json" };
const node = (script, ...words) => execFileSync(process.execPath, [script, ...words], { stdio: ["ignore", "ignore", "inherit"] });
const modules = (framework) => readdirSync(`pages/${framework}`).filter((name) => /^[a-z]\w*(-\w+)*\.(mjs|jsx)$/.test(name) && !name.startsWith("layout"));
const load = (file) => import(pathToFileURL(resolve(file)));

async function writeStatic(framework) {
  const pages = [];
  for (const file of modules(framework)) {
    const page = await load(`pages/${framework}/${file}`);
    const name = basename(file, ".mjs");
    writeFileSync(`site/${framework}/${name}.html`, page.default);
    pages.push({ name, ...page });
  }
  return pages;
}

const compilers = {
  async tailwind3() {
    const config = "pages/tailwind3/tailwind.config.cjs";
    node("node_modules/tailwindcss3/lib/cli.js", "-c", config, "-i", "pages/tailwind3/input.css", "-o", "site/tailwind3/style.css", "--minify");
    return writeStatic("tailwind3");
  },
  async tailwind4() {
    node("node_modules/@tailwindcss/cli/dist/index.mjs", "-i", "pages/tailwind4/input.css", "-o", "site/tailwind4/style.css");
    return writeStatic("tailwind4");
  },
  async bootstrap() {
    for (const file of ["css/bootstrap.min.css", "js/bootstrap.bundle.min.js"])
      cpSync(`node_modules/bootstrap/dist/${file}`, `site/bootstrap/${basename(file)}`);
    return writeStatic("bootstrap");
  },
  async components() {
    cpSync("node_modules/@shoelace-style/shoelace/dist/themes/light.css", "site/components/light.css");
    await build({ entryPoints: ["pages/components/layout-shoelace.mjs", "pages/components/layout-lit.mjs"], bundle: true, minify: true, format: "esm", outdir: "site/components", logLevel: "error" });
    return writeStatic("components");
  },
  async dawn() {
    cpSync("pages/dawn/base.css", "site/dawn/base.css");
    return writeStatic("dawn");
  },
  async material() {
    const define = { "process.env.NODE_ENV": '"production"' };
    const options = { bundle: true, jsx: "automatic", define, logLevel: "error", loader: { ".js": "jsx" } };
    const pages = [];
    for (const file of modules("material")) {
      const name = basename(file, ".jsx");
      const server = `server/${name}.mjs`;
      const contents = `export * from "./${file}"; export { default as Page } from "./${file}"; export { write } from "./layout-server.jsx";`;
      const stdin = { contents, resolveDir: "pages/material", loader: "jsx" };
      const banner = { js: 'import { createRequire } from "node:module"; const require = createRequire(import.meta.url);' };
      await build({ ...options, stdin, platform: "node", format: "esm", outfile: server, banner });
      const page = await load(server);
      if (page.client) {
        const mount = `import Page from "./${file}"; import { mount } from "./layout.jsx"; mount(Page);`;
        await build({ ...options, stdin: { ...stdin, contents: mount }, minify: true, outfile: `site/material/${name}.js` });
      }
      writeFileSync(`site/material/${name}.html`, page.write(page.client ? null : page.Page, name));
      pages.push({ name, ...page });
    }
    return pages;
  },
  async next() {
    execFileSync(process.execPath, ["../../node_modules/next/dist/bin/next", "build"], { cwd: "pages/next", stdio: ["ignore", "ignore", "inherit"], env: { ...process.env, NEXT_TELEMETRY_DISABLED: "1" } });
    cpSync("pages/next/out", "site/next", { recursive: true });
    const acts = JSON.parse(readFileSync("pages/next/acts.json", "utf8"));
    return Object.entries(acts).map(([name, page]) => ({ name, ...page }));
  },
};

// In the page: the DOM as it is now, as one file without scripts, style sheets within.
async function save() {
  const roots = [];
  const visit = (root) => {
    for (const element of root.querySelectorAll("*")) {
      if (element.shadowRoot) (roots.push(element.shadowRoot), visit(element.shadowRoot));
      if (element.matches("input[type=checkbox], input[type=radio]")) element.toggleAttribute("checked", element.checked);
      else if (element.matches("input")) element.setAttribute("value", element.value);
      if (element.matches("option")) element.toggleAttribute("selected", element.selected && element.parentElement.value !== "");
    }
  };
  visit(document);
  const rules = (sheet) => [...sheet.cssRules].map((rule) => rule.cssText).join("\n");
  for (const root of [document, ...roots]) {
    for (const element of root.querySelectorAll("link[rel=stylesheet], style")) {
      if (element.localName === "style" && element.textContent.trim()) continue;
      const style = document.createElement("style");
      if (element.media) style.media = element.media;
      style.textContent = element.href ? await (await fetch(element.href)).text() : element.sheet ? rules(element.sheet) : "";
      element.replaceWith(style);
    }
    for (const sheet of root.adoptedStyleSheets) {
      const style = document.createElement("style");
      style.textContent = rules(sheet);
      (root.head ?? root).append(style);
    }
    for (const element of root.querySelectorAll("script, link")) element.remove();
  }
  const attributes = [...document.documentElement.attributes].map(({ name, value }) => ` ${name}="${value.replaceAll('"', "&quot;")}"`);
  return `<!DOCTYPE html><html${attributes.join("")}>${document.documentElement.getHTML({ shadowRoots: roots })}</html>\n`;
}

const serve = () =>
  new Promise((started) => {
    const server = createServer((request, response) => {
      const file = join("site", decodeURIComponent(new URL(request.url, "http://shop").pathname));
      try {
        const content = readFileSync(file);
        response.writeHead(200, { "Content-Type": TYPES[extname(file)] ?? "application/octet-stream" }).end(content);
      } catch {
        response.writeHead(404).end();
      }
    });
    server.listen(0, "127.0.0.1", () => started(server));
  });

async function main() {
  const frameworks = chosen.length ? chosen : Object.keys(compilers);
  const browser = await chromium.launch({ executablePath: browserPath, args: ["--no-sandbox", "--disable-gpu", "--disable-quic"] });
  const server = await serve();
  for (const framework of frameworks) {
    for (const folder of ["site", "built"]) {
      rmSync(`${folder}/${framework}`, { recursive: true, force: true });
      mkdirSync(`${folder}/${framework}`, { recursive: true });
    }
    for (const { name, acts = [], phone = false, served = null } of await compilers[framework]()) {
      const viewport = phone ? { width: 390, height: 844 } : { width: 1280, height: 800 };
      const page = await browser.newPage({ viewport, isMobile: phone, hasTouch: phone });
      page.on("pageerror", (error) => console.error(`${framework}/${name}: ${error.message}`));
      page.setDefaultTimeout(15_000);
      await page.goto(`http://127.0.0.1:${server.address().port}/${framework}/${name}.html`, { waitUntil: "networkidle" });
      for (const [selector, act] of acts) {
        const target = page.locator(selector).first();
        if (!(await target.count())) throw new Error(`${framework}/${name}: no ${selector}`);
        if (act === "click" || act === "hover") await target[act]();
        else if (/^<.*>$/.test(act)) await target.press(act.slice(1, -1));
        else await target.fill(act);
        await page.waitForTimeout(600); // the transitions of the frameworks end within half a second
      }
      writeFileSync(`built/${framework}/${name}.html.gz`, gzipSync(served ?? (await page.evaluate(save))));
      await page.close();
    }
    console.log(framework, readdirSync(`built/${framework}`).length);
  }
  await browser.close();
  server.close();
}

await main();
