"use client";
import { Disclosure, DisclosureButton, DisclosurePanel, Listbox, ListboxButton, ListboxOption, ListboxOptions, Switch } from "@headlessui/react";
import { useState } from "react";
import { brands, price, products } from "../../../../shop.mjs";
import styles from "./collection.module.css";

const ORDERS = ["Featured", "Price, low to high", "Price, high to low", "Newest"];

export default function Collection() {
  const [order, setOrder] = useState(ORDERS[0]);
  const [inStock, setInStock] = useState(true);
  const [open, setOpen] = useState(false);
  const filters = { Brand: brands, Size: ["XS", "S", "M", "L", "XL"], Price: ["Under $30", "$30 to $60", "$60 to $100", "Over $100"] };
  return (
    <div className={styles.page}>
      <nav aria-label="Breadcrumb" className={styles.crumbs}>
        <a href="/next">Home</a> <a href="/next/kitchen">Kitchen</a> <span aria-current="page">All</span>
      </nav>
      <button className={styles.toggle} onClick={() => setOpen(!open)} aria-expanded={open}>Filter and sort</button>
      <aside className={`${styles.filters} ${open ? styles.open : ""}`}>
        {Object.entries(filters).map(([title, values], i) => (
          <Disclosure key={title} defaultOpen={i === 0}>
            <DisclosureButton>{title}</DisclosureButton>
            <DisclosurePanel static={i === 1} className={i === 1 ? styles.sizes : undefined}>
              {values.map((value) => <label key={value}><input type="checkbox" name={title} value={value} /> {value}</label>)}
            </DisclosurePanel>
          </Disclosure>
        ))}
        <Switch checked={inStock} onChange={setInStock} className={styles.switch}>In stock only</Switch>
        <button className={styles.apply} onClick={() => setOpen(false)}>Show 12 results</button>
      </aside>
      <Listbox value={order} onChange={setOrder}>
        <ListboxButton className={styles.order}>{order}</ListboxButton>
        <ListboxOptions static={false}>{ORDERS.map((each) => <ListboxOption key={each} value={each}>{each}</ListboxOption>)}</ListboxOptions>
      </Listbox>
      <ul className={styles.grid}>
        {products.map((each) => (
          <li key={each.id} className={styles.tile}>
            <a href={`/next${each.href}`}>{each.title}</a>
            <span>{price(each.cents)}</span>
            <fieldset className={styles.swatches}>
              <legend className="visually-hidden">Color of {each.title}</legend>
              {each.colors.map((color, i) => (
                <label key={color}><input type="radio" name={`color-${each.id}`} defaultChecked={i === 0} className={styles.radio} /> {color}</label>
              ))}
              {each.colors.length > 3 && <a href={`/next${each.href}`} className={styles.rest}>+{each.colors.length - 3}</a>}
            </fieldset>
            <button className={styles.compare}>Compare</button>
          </li>
        ))}
      </ul>
      <nav aria-label="Pages" className={styles.pagination}>
        <a aria-disabled="true" className={styles.disabled}>Previous</a>
        {[1, 2, 3, 4, 5].map((number) => <a key={number} href={`?page=${number}`}>{number}</a>)}
        <a href="?page=2">Next</a>
        <button className={styles.load}>Load more</button>
      </nav>
    </div>
  );
}
