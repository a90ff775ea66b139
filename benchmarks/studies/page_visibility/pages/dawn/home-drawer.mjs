// A phone with the menu drawer open, one level down, as the theme's script leaves it.
import page from "./home.mjs";
export default page.replace('<details id="drawer" class="menu-drawer-container">', '<details id="drawer" class="menu-drawer-container menu-opening" open>')
  .replace('<div class="menu-drawer__inner">', '<div class="menu-drawer__inner submenu-open">').replace("<li><details><summary>Kitchen", '<li><details open class="menu-opening"><summary aria-expanded="true">Kitchen');
export const phone = true;
