// What every page of the study sells. Prices in whole cents, so that frameworks may format them as they like.

export const html = (texts, ...values) =>
  texts.reduce((page, text, i) => page + (Array.isArray(values[i - 1]) ? values[i - 1].join("") : values[i - 1] ?? "") + text);

export const price = (cents) => `$${(cents / 100).toFixed(2)}`;

const product = (id, title, brand, cents, was, colors, sizes, rating, reviews) =>
  ({ id, title, brand, cents, was, colors, sizes, rating, reviews, href: `/products/${id}` });

export const products = [
  product("enamel-kettle", "Enamel kettle with beech handle", "Harrow", 5400, 6900, ["Cream", "Forest", "Slate"], ["1.2 l", "1.8 l"], 4.6, 212),
  product("linen-apron", "Washed linen apron", "Tilda & Sons", 3800, null, ["Oat", "Indigo"], ["S", "M", "L"], 4.8, 97),
  product("oak-board", "End-grain oak chopping board", "Grainworks", 8900, null, [], ["30 cm", "40 cm"], 4.7, 64),
  product("pour-over-set", "Pour-over coffee set for two", "Morning Ritual", 4650, 5200, ["Glass", "Amber"], [], 4.3, 351),
  product("wool-throw", "Lambswool throw in herringbone", "Fellside", 12900, null, ["Heather", "Moss", "Rust", "Stone"], ["130 × 180"], 4.9, 41),
  product("trail-shoe", "Ridge trail running shoe", "Northbeck", 11500, 13900, ["Black", "Teal"], ["40", "41", "42", "43", "44"], 4.4, 508),
  product("rain-shell", "Packable rain shell", "Northbeck", 14900, null, ["Ochre", "Navy"], ["XS", "S", "M", "L", "XL"], 4.5, 176),
  product("bedside-lamp", "Bedside lamp with dimmer", "Lumen Yard", 7200, null, ["Brass", "White"], [], 4.1, 88),
  product("seed-box", "Kitchen garden seed box", "Plot & Row", 2600, 3100, [], [], 4.9, 133),
  product("notebook-trio", "Dotted notebooks, set of three", "Folio", 1850, null, ["Grey", "Mixed"], ["A5", "A6"], 4.2, 274),
  product("steel-bottle", "Insulated steel bottle", "Harrow", 2900, null, ["Graphite", "Sky", "Coral"], ["0.5 l", "0.75 l"], 4.6, 690),
  product("cast-iron-pan", "Cast-iron skillet, pre-seasoned", "Grainworks", 5900, 7500, [], ["24 cm", "28 cm"], 4.8, 445),
];

export const departments = [
  { title: "Kitchen", href: "/kitchen", parts: ["Cookware", "Tableware", "Coffee & tea", "Textiles"] },
  { title: "Outdoor", href: "/outdoor", parts: ["Jackets", "Trail shoes", "Bottles", "Packs"] },
  { title: "Home", href: "/home", parts: ["Lamps", "Throws & blankets", "Storage", "Garden"] },
  { title: "Paper", href: "/paper", parts: ["Notebooks", "Pens", "Calendars"] },
];

export const brands = [...new Set(products.map((each) => each.brand))];
export const countries = ["Austria", "Belgium", "Denmark", "France", "Germany", "Ireland", "Netherlands", "Spain", "Sweden"];
export const slug = (text) => text.toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-|-$/g, "");
