"use client";
import * as Dialog from "@radix-ui/react-dialog";
import * as Menu from "@radix-ui/react-navigation-menu";
import { useState } from "react";
import { departments, products, price, slug } from "../../../shop.mjs";
import styles from "./header.module.css";

export default function Header() {
  const [searching, setSearching] = useState(false);
  const [lines, setLines] = useState([{ ...products[0], count: 1 }, { ...products[4], count: 2 }]);
  return (
    <header className={styles.header}>
      <Dialog.Root>
        <Dialog.Trigger className={styles.burger} aria-label="Open menu">☰</Dialog.Trigger>
        <Dialog.Portal>
          <Dialog.Overlay className={styles.overlay} />
          <Dialog.Content className={styles.sheet}>
            <Dialog.Title>Menu</Dialog.Title>
            {departments.map(({ title, parts, href }) => (
              <details key={title} name="phone-menu">
                <summary>{title}</summary>
                {parts.map((part) => <a key={part} href={`/next${href}/${slug(part)}`}>{part}</a>)}
              </details>
            ))}
            <Dialog.Close>Close menu</Dialog.Close>
          </Dialog.Content>
        </Dialog.Portal>
      </Dialog.Root>
      <a href="/next" className={styles.logo}>Hearth &amp; Field</a>
      <Menu.Root className={styles.nav} delayDuration={0}>
        <Menu.List className={styles.list}>
          {departments.map(({ title, parts, href }) => (
            <Menu.Item key={title}>
              <Menu.Trigger className={styles.trigger}>{title}</Menu.Trigger>
              <Menu.Content className={styles.panel} forceMount>
                {parts.map((part) => <Menu.Link key={part} href={`/next${href}/${slug(part)}`}>{part}</Menu.Link>)}
                <a href={`/next${href}`} className="hide-on-small">All of {title}</a>
              </Menu.Content>
            </Menu.Item>
          ))}
        </Menu.List>
      </Menu.Root>
      <button type="button" aria-expanded={searching} aria-controls="search" onClick={() => setSearching(!searching)} className={styles.icon} title="Search the shop">
        <svg viewBox="0 0 24 24" width="20"><path d="M10 4a6 6 0 1 0 4 10l5 5" fill="none" stroke="currentColor" /></svg>
      </button>
      <form id="search" role="search" className={styles.search} data-open={searching || undefined} action="/next/search">
        <input type="search" name="q" aria-label="Search" />
        <button>Go</button>
        <button type="reset" className={styles.reset}>Clear</button>
      </form>
      <Dialog.Root>
        <Dialog.Trigger className={styles.icon} data-cart>Cart <span className="visually-hidden">with</span> ({lines.length})</Dialog.Trigger>
        <Dialog.Portal>
          <Dialog.Overlay className={styles.overlay} />
          <Dialog.Content className={styles.cart}>
            <Dialog.Title>Your cart</Dialog.Title>
            {lines.map((line) => (
              <div key={line.id} className={styles.line}>
                <a href={`/next${line.href}`}>{line.title}</a> {price(line.cents)}
                <button aria-label={`One less of ${line.title}`} className={line.count === 1 ? styles.off : undefined}>−</button>
                <input type="number" defaultValue={line.count} aria-label={`Quantity of ${line.title}`} />
                <button aria-label={`One more of ${line.title}`}>+</button>
                <button onClick={() => setLines(lines.filter((each) => each.id !== line.id))}>Remove</button>
              </div>
            ))}
            <a className={styles.checkout} href="/next/checkout">Check out</a>
            <Dialog.Close aria-label="Close cart">×</Dialog.Close>
          </Dialog.Content>
        </Dialog.Portal>
      </Dialog.Root>
    </header>
  );
}
