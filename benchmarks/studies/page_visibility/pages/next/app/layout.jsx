import "./globals.css";
import Header from "./header.jsx";

export const metadata = { title: "Hearth & Field" };
export const viewport = { width: "device-width", initialScale: 1 };

export default function Layout({ children }) {
  return (
    <html lang="en">
      <body>
        <a className="skip" href="#content">Skip to content</a>
        <Header />
        <main id="content">{children}</main>
        <footer className="footer">
          {["Delivery", "Returns", "Gift cards", "Contact"].map((word) => (
            <a key={word} href={`/next/pages/${word.toLowerCase().replace(" ", "-")}`}>{word}</a>
          ))}
          <form className="newsletter" action="/newsletter">
            <label htmlFor="newsletter-mail" className="visually-hidden">E-mail address</label>
            <input id="newsletter-mail" type="email" placeholder="you@example.com" />
            <button>Subscribe</button>
          </form>
          <button className="to-top only-phone" type="button" aria-label="Back to top">↑</button>
        </footer>
      </body>
    </html>
  );
}
