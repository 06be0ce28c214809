'use strict';
// What the scripts of all pages share. Names of a model are put in as text, never as markup.
const pageParts = (() => {
  const SVG = 'http://www.w3.org/2000/svg';
  const page = document.getElementById('page');
  const tip = document.getElementById('tip');
  window.addEventListener('error', (event) => { document.documentElement.dataset.error = String(event.message); });

  // Sets attributes and event listeners (`onclick`) of an element, and appends children; texts become text nodes.
  function fill(element, attributes, children) {
    for (const [key, value] of Object.entries(attributes || {})) {
      if (value === undefined || value === null || value === false) continue;
      if (key.startsWith('on')) element.addEventListener(key.slice(2), value);
      else if (key === 'style') element.style.cssText = value;
      else element.setAttribute(key, value === true ? '' : value);
    }
    for (const child of children.flat()) {
      if (child === undefined || child === null) continue;
      element.append(child instanceof Node ? child : String(child));
    }
    return element;
  }
  const el = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
  const svg = (tag, attributes, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);

  function showTip(event, text) {
    tip.textContent = text;
    tip.hidden = false;
    const box = tip.getBoundingClientRect();
    tip.style.left = `${Math.max(4, Math.min(event.clientX + 14, innerWidth - box.width - 8))}px`;
    tip.style.top = `${Math.max(4, Math.min(event.clientY + 14, innerHeight - box.height - 8))}px`;
  }
  const hideTip = () => { tip.hidden = true; };
  function withTip(element, text) {
    element.addEventListener('pointermove', (event) => showTip(event, text));
    element.addEventListener('pointerleave', hideTip);
    return element;
  }

  // Appends a section with a title, and links to it from the contents.
  function section(id, title, says, ...children) {
    document.getElementById('contents').append(el('a', {href: `#${id}`}, title));
    const made = el('section', {id}, el('h2', {}, title), says ? el('p', {}, says) : null, ...children);
    page.append(made);
    return made;
  }
  return {facts: JSON.parse(document.getElementById('facts').textContent), page, el, svg, showTip, hideTip, withTip, section};
})();
