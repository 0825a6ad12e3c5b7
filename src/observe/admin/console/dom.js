// Elements without innerHTML: the contents of events are text, never markup.

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

/** Sets a changed text. An unchanged one is not announced again, and causes no layout. */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

export function setHidden(element, hidden) {
  if (element.hidden !== hidden) element.hidden = hidden;
}

/**
 * Makes the children of `parent` match `items`. Elements with a known key are updated and not replaced, so that they keep focus and
 * open details.
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

/** A form that calls `onSubmit` and is not sent. */
export function form(attributes, onSubmit, ...children) {
  const onsubmit = (event) => {
    event.preventDefault();
    onSubmit();
  };
  return h('form', { class: 'search', onsubmit, ...attributes }, ...children);
}

/** A table with these columns; '' is a column of buttons. @param classes columns by class: `{ number: ['Bytes'] }` */
export function table(attributes, columns, body, classes = {}) {
  const classOf = (text) => Object.keys(classes).filter((name) => classes[name].includes(text));
  const heads = columns.map((text) =>
    text === '' ? h('td') : h('th', { scope: 'col', class: classOf(text).join(' ') || null, text }),
  );
  return h('table', attributes, h('thead', {}, h('tr', {}, ...heads)), body);
}

/** Adds the columns to a table of the page. @returns its body */
export function fill(element, columns, classes) {
  const body = h('tbody');
  element.append(...table({}, columns, body, classes).childNodes);
  return body;
}

/** A cell of a table. On a phone rows are stacked, and each cell shows the name of its column. */
export function cell(label, { number = false, className = '' } = {}, ...children) {
  const classes = [number ? 'number' : '', className].join(' ').trim() || null;
  return h('td', { 'data-label': label, class: classes }, ...children);
}

/** A small button of a row. @param of what it acts on, for screen readers */
export function rowButton(text, className, of, onclick) {
  const named = { class: `small ${className}`, text, 'aria-label': `${text} ${of}` };
  return h('button', { type: 'button', ...named, onclick });
}

/** A row that says that there are none. */
export function emptyRow(columns, text) {
  return h('tr', { class: 'empty' }, h('td', { colspan: columns, text }));
}

/** As `keyed`, for rows of a table that may be empty. */
export function keyedRows(body, items, keyOf, create, { columns, empty }) {
  const rows = items.length === 0 ? [null] : items;
  keyed(
    body,
    rows,
    (item) => (item === null ? 'none' : keyOf(item)),
    (item) => (item === null ? still(emptyRow(columns, empty)) : create(item)),
  );
}

/** A row of `keyed` that never changes. */
export function still(element) {
  return { element, update: () => {} };
}
