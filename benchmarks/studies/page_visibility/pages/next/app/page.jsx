import Link from "next/link";
import { products, price } from "../../../shop.mjs";
import styles from "./home.module.css";

export default function Home() {
  return (
    <>
      <section className={styles.hero}>
        <h1>Things for slow mornings</h1>
        <Link href="/collection">Shop the season</Link>
        <Link href="/stories/kettles" className={styles.story}>Read the story</Link>
      </section>
      <section className={styles.rail} aria-label="Bestsellers" tabIndex={0}>
        {products.map((each, i) => (
          <article key={each.id} className={styles.card} data-index={i}>
            <Link href={each.href}>{each.title}</Link>
            <p>{price(each.cents)}{each.was && <s>{price(each.was)}</s>}</p>
            <div className={styles.quick}>
              <button>Quick add</button>
              <button className={styles.wish} aria-label={`Save ${each.title}`}>♡</button>
            </div>
            {each.colors.length > 2 && <a className={styles.more} href={each.href}>{each.colors.length} colors</a>}
          </article>
        ))}
        <button className={styles.previous} aria-label="Previous">‹</button>
        <button className={styles.following} aria-label="Next">›</button>
      </section>
      <aside className={styles.cookies} role="dialog" aria-label="Cookies">
        <p>We use cookies to keep your cart.</p>
        <button>Accept</button>
        <button>Only what is needed</button>
        <details>
          <summary>Settings</summary>
          <label><input type="checkbox" /> Statistics</label>
          <label><input type="checkbox" disabled defaultChecked /> Cart</label>
        </details>
      </aside>
    </>
  );
}
