import createCache from "@emotion/cache";
import { CacheProvider } from "@emotion/react";
import extract from "@emotion/server/create-instance";
import { renderToString } from "react-dom/server";
import { themed } from "./layout.jsx";

const document = (name, styles, body, script) => `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>${name} – Folio</title>${styles}</head><body><div id="root">${body}</div>${script}</body></html>`;

/** The page as a server sends it, with emotion's critical styles; without a component, only what the browser needs to render it. */
export function write(Page, name) {
  if (!Page) return document(name, "", "", `<script defer src="${name}.js"></script>`);
  const cache = createCache({ key: "css" });
  const { extractCriticalToChunks, constructStyleTagsFromChunks } = extract(cache);
  const body = renderToString(<CacheProvider value={cache}>{themed(Page)}</CacheProvider>);
  return document(name, constructStyleTagsFromChunks(extractCriticalToChunks(body)), body, "");
}
