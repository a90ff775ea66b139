import { html } from "../../shop.mjs";

export const document = (title, head, body) => html`<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>${title}</title>${head}</head><body>${body}</body></html>`;

export const shoelace = (title, body, style = "") =>
  document(title, html`<link rel="stylesheet" href="light.css"><script type="module" src="layout-shoelace.js"></script><style>
    .wide { display: none; } @media (width >= 768px) { .wide { display: inline-block; } .narrow { display: none; } } ${style}</style>`, body);

export const lit = (title, body, style = "") => document(title, html`<script type="module" src="layout-lit.js"></script><style>.wide { display: none } @media (min-width: 801px) { .wide { display: revert } } ${style}</style>`, body);
