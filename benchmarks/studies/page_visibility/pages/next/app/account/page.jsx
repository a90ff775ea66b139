"use client";
import * as Dialog from "@radix-ui/react-dialog";
import * as Menu from "@radix-ui/react-dropdown-menu";
import { useState } from "react";
import { countries, products, price } from "../../../../shop.mjs";

export default function Account() {
  const [company, setCompany] = useState(false);
  return (
    <div className="account">
      <style jsx>{`
        .account { display: flex; gap: 2rem; }
        .side { display: flex; flex-direction: column; }
        .tabs { display: none; }
        @media (max-width: 700px) { .side { display: none; } .tabs { display: block; } }
        table { border-collapse: collapse; }
        @media (max-width: 700px) { td:nth-child(3), th:nth-child(3) { display: none; } }
        .company { display: none; }
        .company.is-on { display: grid; }
      `}</style>
      <nav className="side" aria-label="Account">
        {["Orders", "Addresses", "Payment", "Wish list", "Sign out"].map((word) => <a key={word} href={`/next/account/${word.toLowerCase().replace(" ", "-")}`}>{word}</a>)}
      </nav>
      <select className="tabs" aria-label="Section">{["Orders", "Addresses", "Payment"].map((word) => <option key={word}>{word}</option>)}</select>
      <Menu.Root modal={false}>
        <Menu.Trigger data-menu>My account</Menu.Trigger>
        <Menu.Portal>
          <Menu.Content sideOffset={4}>
            <Menu.Item>Profile</Menu.Item>
            <Menu.CheckboxItem checked>Newsletter</Menu.CheckboxItem>
            <Menu.Item disabled>Vouchers</Menu.Item>
            <Menu.Item asChild><a href="/next/logout">Sign out</a></Menu.Item>
          </Menu.Content>
        </Menu.Portal>
      </Menu.Root>
      <section>
        <h1>Orders</h1>
        <table>
          <thead><tr><th>Order</th><th>Total</th><th>Invoice</th><th /></tr></thead>
          <tbody>
            {products.slice(0, 6).map((each, i) => (
              <tr key={each.id}>
                <td><a href={`/next/orders/${each.id}`}>{each.title}</a></td>
                <td>{price(each.cents)}</td>
                <td><a href={`/next/invoices/${each.id}.pdf`}>Invoice</a></td>
                <td>
                  <button>Buy again</button>
                  <button hidden={i > 1}>Return</button>
                  <button style={{ display: i === 0 ? undefined : "none" }}>Track</button>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
        <Dialog.Root>
          <Dialog.Trigger data-address>Add an address</Dialog.Trigger>
          <Dialog.Portal>
            <Dialog.Overlay />
            <Dialog.Content>
              <Dialog.Title>New address</Dialog.Title>
              <label>Street <input name="street" autoComplete="street-address" /></label>
              <label>City <input name="city" /></label>
              <label>Country <select name="country">{countries.map((each) => <option key={each}>{each}</option>)}</select></label>
              <label><input type="checkbox" checked={company} onChange={(event) => setCompany(event.target.checked)} /> For a company</label>
              {company && <label>VAT number <input name="vat" /></label>}
              <button type="submit">Save address</button>
              <Dialog.Close>Cancel</Dialog.Close>
            </Dialog.Content>
          </Dialog.Portal>
        </Dialog.Root>
      </section>
    </div>
  );
}
