"use client";
import * as Accordion from "@radix-ui/react-accordion";
import * as Tabs from "@radix-ui/react-tabs";
import { useState } from "react";
import { price, products } from "../../../../shop.mjs";
import styles from "./product.module.css";

const QUESTIONS = { "How heavy is it?": "1.1 kg without its lid.", "Which hobs does it suit?": "Gas, induction and ceramic.", "Is the handle replaceable?": "Yes, for $9." };

export default function Product() {
  const kettle = products[0];
  const [picture, setPicture] = useState(0);
  const [color, setColor] = useState(kettle.colors[0]);
  return (
    <article className={styles.product}>
      <section className={styles.gallery} aria-roledescription="carousel">
        {["Front", "Side", "Lid", "In use"].map((view, i) => (
          <figure key={view} hidden={i !== picture}><button aria-label={`Zoom: ${view}`}>⤢</button></figure>
        ))}
        <div className={styles.thumbs}>
          {["Front", "Side", "Lid", "In use"].map((view, i) => <button key={view} aria-label={view} aria-pressed={i === picture} onClick={() => setPicture(i)} />)}
        </div>
        <div className={styles.dots}>{["Front", "Side", "Lid", "In use"].map((view, i) => <button key={view} aria-label={`Picture ${i + 1}`} />)}</div>
      </section>
      <form className={styles.buy}>
        <h1>{kettle.title}</h1>
        <p>{price(kettle.cents)}</p>
        <fieldset>
          <legend>Color</legend>
          {kettle.colors.map((each) => (
            <label key={each}><input type="radio" name="color" value={each} checked={each === color} onChange={() => setColor(each)} className="visually-hidden" /> {each}</label>
          ))}
        </fieldset>
        <label>Size <select name="size">{kettle.sizes.map((size) => <option key={size}>{size}</option>)}</select></label>
        <div className={styles.notice} data-color={color}><a href="#wait">Tell me when Slate is back</a></div>
        <label className={styles.gift}><input type="checkbox" name="gift" /> A gift</label>
        <textarea className={styles.message} name="message" aria-label="Gift message" />
        <button className={styles.add}>Add to cart</button>
        <button type="button" className={`${styles.express} hide-on-small`}>Buy now</button>
      </form>
      <Tabs.Root defaultValue="details" className={styles.tabs}>
        <Tabs.List>
          <Tabs.Trigger value="details">Details</Tabs.Trigger>
          <Tabs.Trigger value="care">Care</Tabs.Trigger>
          <Tabs.Trigger value="reviews">Reviews ({kettle.reviews})</Tabs.Trigger>
        </Tabs.List>
        <Tabs.Content value="details"><a href="/next/size-guide">Size guide</a></Tabs.Content>
        <Tabs.Content value="care" forceMount><a href="/next/care.pdf">Care sheet</a> <button>Print</button></Tabs.Content>
        <Tabs.Content value="reviews" forceMount className={styles.panel}>
          {["Best kettle", "Loud whistle", "Lovely"].map((title) => <div key={title}><a href="#review">{title}</a><button>Helpful</button><button>Report</button></div>)}
        </Tabs.Content>
      </Tabs.Root>
      <Accordion.Root type="multiple" defaultValue={["How heavy is it?"]} className={styles.questions}>
        {Object.entries(QUESTIONS).map(([question, answer]) => (
          <Accordion.Item key={question} value={question}>
            <Accordion.Header><Accordion.Trigger>{question}</Accordion.Trigger></Accordion.Header>
            <Accordion.Content forceMount className={styles.answer}>{answer} <button>Was this helpful?</button></Accordion.Content>
          </Accordion.Item>
        ))}
      </Accordion.Root>
      <div className={styles.bar}><span>{kettle.title}</span><button>Add to cart</button><a href="#top">Options</a></div>
    </article>
  );
}
