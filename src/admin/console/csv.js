/** One value: what is null stays empty, everything else is in quotes. */
export function csvValue(value) {
  return value === null || value === undefined ? '' : `"${String(value).replaceAll('"', '""')}"`;
}

/** Rows of a CSV text; a value without quotes and without characters is null. */
export function parseCsv(text) {
  const rows = [];
  let row = [];
  for (let at = 0; at < text.length;) {
    let value = null;
    if (text[at] === '"') {
      [value, at] = readQuoted(text, at + 1);
    } else {
      const end = endOfPlain(text, at);
      if (end > at) value = text.slice(at, end);
      at = end;
    }
    row.push(value);
    const next = text[at];
    if (next === '\r') at += 1;
    at += 1;
    if (next === ',') {
      // A comma at the very end stands before one more empty value.
      if (at >= text.length) row.push(null);
      else continue;
    }
    rows.push(row);
    row = [];
  }
  if (row.length > 0) rows.push(row);
  return rows;
}

function readQuoted(text, from) {
  let value = '';
  for (let at = from; ;) {
    const quote = text.indexOf('"', at);
    if (quote === -1) return [value + text.slice(at), text.length];
    value += text.slice(at, quote);
    if (text[quote + 1] !== '"') return [value, quote + 1];
    value += '"';
    at = quote + 2;
  }
}

function endOfPlain(text, from) {
  let at = from;
  while (at < text.length && text[at] !== ',' && text[at] !== '\n' && text[at] !== '\r') at += 1;
  return at;
}
