// Declarative shadow roots as a server sends them: slots, fallback content, nested roots, hosts that hide and show.
import { departments, html, price, products, slug } from "../../shop.mjs";
import { document } from "./layout.mjs";

const card = (each, i) => html`
  <shop-card ${i % 2 ? 'view="list"' : ""} ${i === 5 ? "hidden" : ""}>
    <template shadowrootmode="open"><style>
      :host { display: grid; } :host([view="list"]) .zoom { display: none; } :host([hidden]) { display: none; }
      ::slotted(.badge) { display: none; } .bar { visibility: hidden; } .bar slot { visibility: visible; display: contents; }
      @media (width < 600px) { .zoom { display: none; } slot[name="more"] { display: none; } }
      @layer a, b; @layer b { .share { display: none; } } @layer a { .share { display: inline; } }
    </style><slot name="title"><a href="#none">Untitled</a></slot><button class="zoom">Zoom</button><button class="share">Share</button>
      <div class="bar"><button>In the hidden bar</button><slot></slot></div><slot name="more"><button>More</button></slot></template>
    <a slot="title" href="${each.href}">${each.title}</a><a href="/sale" class="badge">Sale</a><button>Add, ${price(each.cents)}</button>${i === 2 ? '<button slot="more">All of it</button>' : ""}
  </shop-card>`;

export const served = document("Shelf", "<style>shop-card::part(x) { display: none } body > nav:has(+ main shop-card) .late { display: none } .late { display: inline }</style>", html`
  <nav><a href="/">Shelf</a><button class="late">Late</button>
    <shop-menu><template shadowrootmode="open"><style>
      details:not([open]) > * ~ * { display: none } .wide { display: none } @media (min-width: 900px) { .wide { display: block } details { display: none } }
      </style><div class="wide"><slot name="wide"></slot></div><details><summary>Menu</summary><slot name="narrow"></slot></details></template>
      <div slot="wide">${departments.map(({ title, href }) => `<a href="${href}">${title}</a>`)}</div>
      <div slot="narrow">${departments.map(({ title, href }) => `<a href="${href}/${slug(title)}">${title}, narrow</a>`)}</div></shop-menu></nav>
  <main>${products.slice(0, 8).map(card)}
    <outer-box><template shadowrootmode="open"><inner-box><template shadowrootmode="open"><style>button { display: none } slot { display: block }</style><button>Inner</button><slot></slot></template><a href="/nested">Through two roots</a><slot></slot></inner-box></template><button>From outside</button></outer-box>
    <empty-box><template shadowrootmode="open"></template><a href="/nothing">In an empty root</a></empty-box>
    <closed-box><template shadowrootmode="closed"><slot></slot><button>In a closed root</button></template><a href="/closed">Slotted in a closed root</a></closed-box>
    <template><button>In a plain template</button></template>
  </main>`);
export default served;
