// Elements without innerHTML: whatever an event says about itself is text, never markup.

/** The element with this id. */
export function byId(id) {
  return document.getElementById(id);
}

/**
 * An element with attributes and children. `class`, `text`, `onclick` and other `on…` are understood; attributes that are
 * null, undefined or false are left out.
 */
export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === 'text') element.textContent = value;
    else if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? '' : value);
  }
  element.append(...children);
  return element;
}

/** Sets the text of an element if it is another one: what does not change is not announced, nor laid out again. */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

export function setHidden(element, hidden) {
  if (element.hidden !== hidden) element.hidden = hidden;
}

export function setClass(element, name, on) {
  element.classList.toggle(name, on);
}

/**
 * Brings the children of `parent` in line with `items`: those whose key is known stay the same elements and are updated,
 * so that focus and open details survive.
 * @param {(item: any) => string | number} keyOf
 * @param {(item: any) => { element: Element, update: (item: any) => void }} create
 */
export function keyed(parent, items, keyOf, create) {
  const known = (parent.millraceRows ??= new Map());
  const wanted = new Set(items.map(keyOf));
  for (const [key, { element }] of known) {
    if (wanted.has(key)) continue;
    element.remove();
    known.delete(key);
  }
  let before = parent.firstElementChild;
  for (const item of items) {
    const key = keyOf(item);
    let row = known.get(key);
    if (row === undefined) known.set(key, (row = create(item)));
    row.update(item);
    if (row.element === before) before = before.nextElementSibling;
    else parent.insertBefore(row.element, before);
  }
}

/** A form that asks for something here, and is not sent anywhere. */
export function form(attributes, onSubmit, ...children) {
  const onsubmit = (event) => {
    event.preventDefault();
    onSubmit();
  };
  return h('form', { class: 'search', onsubmit, ...attributes }, ...children);
}

/** A table with these columns. One without a name has buttons. @param classes columns by class: `{ number: ['Bytes'] }` */
export function table(attributes, columns, body, classes = {}) {
  const classOf = (text) => Object.keys(classes).filter((name) => classes[name].includes(text));
  const heads = columns.map((text) =>
    text === '' ? h('td') : h('th', { scope: 'col', class: classOf(text).join(' ') || null, text }),
  );
  return h('table', attributes, h('thead', {}, h('tr', {}, ...heads)), body);
}

/** Gives a table of the page its columns. @returns its body */
export function fill(element, columns, classes) {
  const body = h('tbody');
  element.append(...table({}, columns, body, classes).childNodes);
  return body;
}

/** One cell of a table. On a phone rows are stacked, and each cell is named by its column. */
export function cell(label, { number = false, className = '' } = {}) {
  return h('td', {
    'data-label': label,
    class: [number ? 'number' : '', className].join(' ').trim() || null,
  });
}

/** A row that says there are none. */
export function emptyRow(columns, text) {
  return h('tr', { class: 'empty' }, h('td', { colspan: columns, text }));
}
