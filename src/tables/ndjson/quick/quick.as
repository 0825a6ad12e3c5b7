/**
 * AssemblyScript (TypeScript in syntax, WebAssembly as result): shapes the usual items of an array into rows, in one
 * step over their bytes. `npm run wasm` makes `quick-wasm.ts` of it. Items with anything unusual in them (a member without a
 * column, a value that does not fit, a name that comes twice, an escape that rows write in another way) are left to
 * `Shaper`, which says what becomes of them; so nothing here is decoded, rejected or moved to `extra`.
 *
 * `layout.ts` writes what a table is made of into the memory, and says where: the offsets below are those of its
 * structures. Functions that read take the address of a value's first byte and return the address after its last, or 0
 * when it is unusual. Behind the text there are zeros, at which every reading stops.
 */

/** Of a row: addresses, counts, and what is counted. */
const COLUMNS: u32 = 0, COLUMN_COUNT: u32 = 4, STATE_SIZE: u32 = 8, POSITION_SLOT: u32 = 12, KEY_SLOT: u32 = 16;
const REQUIRED: u32 = 20, REQUIRED_COUNT: u32 = 24, OLDER: u32 = 28, OLDER_COUNT: u32 = 32, FIELDS: u32 = 36;
const TAIL: u32 = 40, TAIL_LENGTH: u32 = 44, ROOM: u32 = 48, OUT: u32 = 52, OUT_LENGTH: u32 = 56, OUT_SIZE: u32 = 60;
const ROWS: u32 = 64, FILLED: u32 = 68, INHERITED: u32 = 72, INHERITED_COUNT: u32 = 76, WANTED: u32 = 80, WAITING: u32 = 84;
/** Of a column, 16 bytes: its `,"name":` and what is given for it. Inherited ones have their slot in the third place. */
const HEAD: u32 = 0, HEAD_LENGTH: u32 = 4, GIVEN: u32 = 8, GIVEN_LENGTH: u32 = 12, COLUMN_SIZE: u32 = 16;
/** Of the members of an object: the first of them, how many, and which one came first last time. */
const FIRST: u32 = 0, FIELD_COUNT: u32 = 4, GUESS: u32 = 8;
/** Of a member: its name in quotes, the member that came after it last time, and what to do with it. */
const KEY: u32 = 0, KEY_LENGTH: u32 = 4, NEXT: u32 = 8, SLOT: u32 = 12, TYPE: u32 = 16, INNER: u32 = 20, NESTED: u32 = 24, IS_MAP: u32 = 28;
const KEY_START: u32 = 32, KEY_MASK: u32 = 40, FIELD_SIZE: u32 = 48;
/** Of a row that is being gathered: its table, its position, then first byte and end of each slot; 0 for no value. */
const OWNER: u32 = 0, POSITION: u32 = 4, SLOTS: u32 = 8, SLOT_SIZE: u32 = 8;

const TEXT: u32 = 1, INTEGER: u32 = 2, DECIMAL: u32 = 3, TIMESTAMP: u32 = 4, DATE: u32 = 5, BOOLEAN: u32 = 6;

/** Numbers no longer than this fit their column, if they have no exponent. */
const SURELY_FITS: u32 = 18;
/** Bytes that a copy may write behind its end. */
const OVERRUN: u32 = 16;
const QUOTE: u32 = 0x22, COMMA: u32 = 0x2c, MINUS: u32 = 0x2d, POINT: u32 = 0x2e, ZERO: u32 = 0x30, NINE: u32 = 0x39, COLON: u32 = 0x3a;
const OPEN_BRACKET: u32 = 0x5b, BACKSLASH: u32 = 0x5c, CLOSE_BRACKET: u32 = 0x5d, OPEN_BRACE: u32 = 0x7b, CLOSE_BRACE: u32 = 0x7d;
const SPACE: u32 = 0x20, LINE_FEED: u32 = 10;
const NULL: u32 = 0x6c6c756e, TRUE: u32 = 0x65757274, ALSE: u32 = 0x65736c61;

/** Where rows are gathered: the first byte, the first free one, and the end. */
let states: u32 = 0;
let free: u32 = 0;
let statesEnd: u32 = 0;
/** Where the last reading found something unusual. */
let stopped: u32 = 0;
let elements: u32 = 0;

export function lastStop(): u32 { return stopped; }
export function lastElements(): u32 { return elements; }

/** Says where rows are gathered. */
export function gatherAt(from: u32, to: u32): void {
  states = from;
  statesEnd = to;
}

/**
 * Shapes items that follow one another, from the opening brace of the first.
 * @param row of the table
 * @returns address of the comma or bracket after the last item that was shaped; 0 when there is none
 */
export function shape(row: u32, from: u32, longest: u32): u32 {
  let done: u32 = 0;
  let at = from;
  elements = 0;
  while (true) {
    forget(row);
    const state = gather(row, 0);
    if (state == 0) return done;
    const to = object(load<u32>(row, FIELDS), state, at);
    if (to == 0) return done;
    const next = white(to);
    const c = byte(next);
    stopped = next;
    if ((c != COMMA && c != CLOSE_BRACKET) || next - at > longest || !complete(row, state)) return done;
    if (!hasRoom(row, to - at)) return done;
    if (load<u32>(row, WANTED)) write(row, 0, state);
    for (let inner = state + load<u32>(row, STATE_SIZE); inner < free; ) {
      const owner: u32 = load<u32>(inner, OWNER);
      if (load<u32>(owner, WANTED)) write(owner, row, inner);
      inner += load<u32>(owner, STATE_SIZE);
    }
    elements += 1;
    done = next;
    if (c != COMMA) return done;
    at = white(next + 1);
    stopped = at;
    if (byte(at) != OPEN_BRACE) return done;
  }
}

/** Forgets the rows of the item before. */
function forget(row: u32): void {
  let inner = states + load<u32>(row, STATE_SIZE);
  while (inner < free) {
    const owner: u32 = load<u32>(inner, OWNER);
    store<u32>(owner, 0, WAITING);
    inner += load<u32>(owner, STATE_SIZE);
  }
  free = states;
}

/** Begins a row. Returns 0 when there is no room. */
function gather(row: u32, position: u32): u32 {
  const size: u32 = load<u32>(row, STATE_SIZE);
  const state = free;
  if (state + size > statesEnd) return 0;
  free += size;
  memory.fill(state + SLOTS, 0, size - SLOTS);
  store<u32>(state, row, OWNER);
  store<u32>(state, position, POSITION);
  return state;
}

function byte(at: u32): u32 {
  return load<u8>(at);
}

function fail(at: u32): u32 {
  stopped = at;
  return 0;
}

function white(at: u32): u32 {
  let i = at;
  let c = byte(i);
  while (c == 0x20 || c == 0x0a || c == 0x0d || c == 0x09) c = byte(++i);
  return i;
}

/** The members of an object. */
function object(fields: u32, state: u32, at: u32): u32 {
  let i = white(at + 1);
  if (byte(i) == CLOSE_BRACE) return i + 1;
  let guess: u32 = fields + GUESS;
  while (true) {
    let field: u32 = load<u32>(guess);
    if (!isKey(field, i)) {
      field = find(fields, i);
      if (field == 0) return fail(i);
      store<u32>(guess, field);
    }
    guess = field + NEXT;
    i += load<u32>(field, KEY_LENGTH);
    if (byte(i) != COLON) i = white(i);
    if (byte(i) != COLON) return fail(i);
    i = member(field, state, white(i + 1));
    if (i == 0) return 0;
    i = white(i);
    const c = byte(i);
    if (c == CLOSE_BRACE) return i + 1;
    if (c != COMMA) return fail(i);
    i = white(i + 1);
  }
}

/** A name is compared with both its quotes, so that no other name has it as its beginning. */
function isKey(field: u32, at: u32): bool {
  if ((load<u64>(at) & load<u64>(field, KEY_MASK)) != load<u64>(field, KEY_START)) return false;
  const key: u32 = load<u32>(field, KEY);
  const length: u32 = load<u32>(field, KEY_LENGTH);
  if (length <= 8) return true;
  for (let i: u32 = 8; i + 8 < length; i += 8) if (load<u64>(at + i) != load<u64>(key + i)) return false;
  return load<u64>(at + length - 8) == load<u64>(key + length - 8);
}

function find(fields: u32, at: u32): u32 {
  let field: u32 = load<u32>(fields, FIRST);
  const end = field + load<u32>(fields, FIELD_COUNT) * FIELD_SIZE;
  for (; field < end; field += FIELD_SIZE) if (isKey(field, at)) return field;
  // A name that the text ends in, or one that no column has.
  const close = byte(at) == QUOTE ? text(at) : 0;
  stopped = close == 0 ? stopped : at;
  return 0;
}

function member(field: u32, state: u32, at: u32): u32 {
  const c = byte(at);
  const slot = load<i32>(field, SLOT);
  // An object or a list notes in its own slot that it has come.
  const place = state + SLOTS + (slot >= 0 ? slot : load<i32>(field, TYPE)) * SLOT_SIZE;
  if (load<u32>(place) != 0) return fail(at);
  if (c == 0x6e) return load<u32>(at) == NULL ? at + 4 : fail(at + 3);
  if (slot < 0) {
    store<u32>(place, at);
    const nested: u32 = load<u32>(field, NESTED);
    if (nested != 0) return nestedRows(nested, load<u32>(field, IS_MAP) != 0, at);
    const inner: u32 = load<u32>(field, INNER);
    return c == OPEN_BRACE && inner != 0 ? object(inner, state, at) : fail(at);
  }
  const end = value(load<u32>(field, TYPE), c, at);
  if (end == 0) return 0;
  store<u32>(place, at);
  store<u32>(place, end, 4);
  return end;
}

/** A value of a column's type, as rows write it. */
function value(type: u32, c: u32, at: u32): u32 {
  if (type == DECIMAL || type == INTEGER) return number(type, at);
  if (type == BOOLEAN) {
    if (load<u32>(at) == TRUE) return at + 4;
    return c == 0x66 && load<u32>(at + 1) == ALSE ? at + 5 : fail(at);
  }
  if (c != QUOTE || type == 0) return fail(at);
  const end = text(at);
  if (end == 0 || type == TEXT) return end;
  return (type == DATE ? end - at == 12 && isDay(at + 1) : isTime(at, end - 1)) ? end : fail(at);
}

/** A text without escapes that rows write in another way: `\u` and `\/`. */
function text(at: u32): u32 {
  let i = at + 1;
  while (true) {
    const bytes = v128.load(i);
    const ends = v128.or(
      v128.or(i8x16.eq(bytes, i8x16.splat(<i8>QUOTE)), i8x16.eq(bytes, i8x16.splat(<i8>BACKSLASH))),
      i8x16.lt_u(bytes, i8x16.splat(0x20)),
    );
    const mask = i8x16.bitmask(ends);
    if (mask == 0) {
      i += 16;
      continue;
    }
    i += ctz(mask);
    const c = byte(i);
    if (c == QUOTE) return i + 1;
    if (c != BACKSLASH) return fail(i);
    const escaped = byte(i + 1);
    // " \ b f n r t
    if (escaped != 0x22 && escaped != 0x5c && escaped != 0x62 && escaped != 0x66 && escaped != 0x6e && escaped != 0x72 && escaped != 0x74) return fail(i + 1);
    i += 2;
  }
}

function isDigit(at: u32): bool {
  const c = byte(at);
  return c >= ZERO && c <= NINE;
}

function number(type: u32, at: u32): u32 {
  let i = at;
  if (byte(i) == MINUS) i += 1;
  if (byte(i) == ZERO) i += 1;
  else if (!isDigit(i)) return fail(i);
  else while (isDigit(i)) i += 1;
  if (byte(i) == POINT) {
    i += 1;
    if (type == INTEGER || !isDigit(i)) return fail(i);
    while (isDigit(i)) i += 1;
  }
  return (byte(i) | 0x20) == 0x65 || i - at > SURELY_FITS ? fail(i) : i;
}

/** -1 when there are not two digits. */
function two(at: u32): i32 {
  return isDigit(at) && isDigit(at + 1) ? <i32>(byte(at) - ZERO) * 10 + <i32>(byte(at + 1) - ZERO) : -1;
}

function isBelow(at: u32, limit: i32): bool {
  const number = two(at);
  return number >= 0 && number < limit;
}

/** `YYYY-MM-DD` of a day that exists, from year 1 on. */
function isDay(at: u32): bool {
  const century = two(at);
  const years = two(at + 2);
  const month = two(at + 5);
  const day = two(at + 8);
  if (century < 0 || years < 0 || century + years == 0) return false;
  if (byte(at + 4) != MINUS || byte(at + 7) != MINUS || month < 1 || month > 12 || day < 1) return false;
  if (month != 2) return day <= (month == 4 || month == 6 || month == 9 || month == 11 ? 30 : 31);
  const leaps = years == 0 ? century % 4 == 0 : years % 4 == 0;
  return day <= (leaps ? 29 : 28);
}

/** As `isTimestamp`, with no more digits than a column has, and no offset in the first or last year. */
function isTime(at: u32, end: u32): bool {
  if (!isDay(at + 1)) return false;
  let i = at + 11;
  if (i == end) return true;
  const separator = byte(i);
  if (separator != 0x54 && separator != SPACE) return false;
  if (!isBelow(i + 1, 24) || byte(i + 3) != COLON || !isBelow(i + 4, 60)) return false;
  if (byte(i + 6) != COLON || !isBelow(i + 7, 60)) return false;
  i += 9;
  if (byte(i) == POINT) {
    const first = i + 1;
    i = first;
    while (isDigit(i)) i += 1;
    if (i == first || i - first > 6) return false;
  }
  if (i == end) return true;
  const zone = byte(i);
  if (zone == 0x5a) return i + 1 == end;
  if (zone != 0x2b && zone != MINUS) return false;
  const year = two(at + 1) * 100 + two(at + 3);
  if (year == 1 || year == 9999) return false;
  return end - i == 6 && isBelow(i + 1, 15) && byte(i + 3) == COLON && isBelow(i + 4, 60);
}

/** The rows inside an array or a map. */
function nestedRows(row: u32, isMap: bool, at: u32): u32 {
  if (byte(at) != (isMap ? OPEN_BRACE : OPEN_BRACKET)) return fail(at);
  const close: u32 = isMap ? CLOSE_BRACE : CLOSE_BRACKET;
  let i = white(at + 1);
  if (byte(i) == close) return i + 1;
  while (true) {
    const position = load<u32>(row, WAITING);
    const state = gather(row, position);
    if (state == 0) return fail(at);
    store<u32>(row, position + 1, WAITING);
    if (isMap) {
      if (byte(i) != QUOTE) return fail(i);
      const end = text(i);
      if (end == 0) return 0;
      const slot = load<i32>(row, KEY_SLOT);
      if (slot >= 0) {
        store<u32>(state + SLOTS + slot * SLOT_SIZE, i);
        store<u32>(state + SLOTS + slot * SLOT_SIZE, end, 4);
      }
      i = white(end);
      if (byte(i) != COLON) return fail(i);
      i = white(i + 1);
    }
    const c = byte(i);
    if (c == OPEN_BRACE) i = object(load<u32>(row, FIELDS), state, i);
    else if (isMap && load<u32>(i) == NULL) i += 4;
    else return fail(i);
    if (i == 0) return 0;
    if (!complete(row, state)) return fail(at);
    i = white(i);
    const next = byte(i);
    if (next == close) return i + 1;
    if (next != COMMA) return fail(i);
    i = white(i + 1);
  }
}

/** As `completeRow`. */
function complete(row: u32, state: u32): bool {
  const slots = state + SLOTS;
  let older: u32 = load<u32>(row, OLDER);
  for (let n = load<u32>(row, OLDER_COUNT); n > 0; n -= 1, older += 12) {
    const from = slots + load<u32>(older, 4) * SLOT_SIZE;
    const to = slots + load<u32>(older) * SLOT_SIZE;
    if (load<u32>(from) == 0) continue;
    if (load<u32>(to) == 0) store<u64>(to, load<u64>(from));
    // Both are there, and no other column has the older one.
    else if (load<u32>(older, 8)) return false;
  }
  let required: u32 = load<u32>(row, REQUIRED);
  for (let n = load<u32>(row, REQUIRED_COUNT); n > 0; n -= 1, required += 8) {
    const place = slots + load<u32>(required) * SLOT_SIZE;
    const length = load<u32>(place, 4) - load<u32>(place);
    // The shortest that will do: a text of nothing is no identity.
    if (length < load<u32>(required, 4)) return false;
  }
  return true;
}

/** Whether the rows that have been gathered can be written. What stands in the item once is in a row at most once. */
function hasRoom(row: u32, length: u32): bool {
  if (load<u32>(row, WANTED) && !fits(row, load<u32>(row, ROOM) + length)) return false;
  let last: u32 = 0;
  let inner = states + load<u32>(row, STATE_SIZE);
  while (inner < free) {
    const owner: u32 = load<u32>(inner, OWNER);
    if (owner != last && load<u32>(owner, WANTED)) {
      const each = load<u32>(owner, ROOM) + inheritedLength(owner, row);
      if (!fits(owner, load<u32>(owner, WAITING) * each + length)) return false;
      last = owner;
    }
    inner += load<u32>(owner, STATE_SIZE);
  }
  return true;
}

function fits(row: u32, length: u32): bool {
  return load<u32>(row, OUT_LENGTH) + length + OVERRUN <= load<u32>(row, OUT_SIZE);
}

/** Bytes of the values that each row inside the item has from around it. */
function inheritedLength(row: u32, around: u32): u32 {
  let length: u32 = 0;
  let column: u32 = load<u32>(row, INHERITED);
  for (let n = load<u32>(row, INHERITED_COUNT); n > 0; n -= 1, column += COLUMN_SIZE) {
    const slot = load<u32>(column, GIVEN);
    const place = states + SLOTS + slot * SLOT_SIZE;
    length += load<u32>(place, 4) - load<u32>(place);
    length += load<u32>(load<u32>(around, COLUMNS) + slot * COLUMN_SIZE, GIVEN_LENGTH);
  }
  return length;
}

/** Adds a row to its table's. @param around the row that it inherits from, whose state is the first; 0 when there is none */
function write(row: u32, around: u32, state: u32): void {
  const out: u32 = load<u32>(row, OUT) + load<u32>(row, OUT_LENGTH);
  const inherited = around == 0 ? out : inherit(row, around, out);
  let at = inherited;
  let place = state + SLOTS;
  let column: u32 = load<u32>(row, COLUMNS);
  let filled: u32 = load<u32>(row, FILLED);
  const count = load<u32>(row, COLUMN_COUNT);
  const position = load<u32>(row, POSITION_SLOT);
  for (let slot: u32 = 0; slot < count; slot += 1) {
    const from: u32 = load<u32>(place);
    if (from != 0) {
      store<u32>(filled, load<u32>(filled) + 1);
      at = copy(load<u32>(column, HEAD), load<u32>(column, HEAD_LENGTH), at);
      at = copy(from, load<u32>(place, 4) - from, at);
    } else if (slot == position) {
      at = copy(load<u32>(column, HEAD), load<u32>(column, HEAD_LENGTH), at);
      at = digits(load<u32>(state, POSITION), at);
    } else if (load<u32>(column, GIVEN_LENGTH) != 0) {
      at = copy(load<u32>(column, HEAD), load<u32>(column, HEAD_LENGTH), at);
      at = copy(load<u32>(column, GIVEN), load<u32>(column, GIVEN_LENGTH), at);
    }
    place += SLOT_SIZE;
    column += COLUMN_SIZE;
    filled += 4;
  }
  at = copy(load<u32>(row, TAIL), load<u32>(row, TAIL_LENGTH), at);
  // Every column came with a comma in front; the first one's place is the brace's.
  if (at == inherited) {
    store<u8>(at, SPACE);
    at += 1;
  }
  store<u8>(out, OPEN_BRACE);
  store<u8>(at, CLOSE_BRACE);
  store<u8>(at + 1, LINE_FEED);
  store<u32>(row, (at + 2 - load<u32>(row, OUT)), OUT_LENGTH);
  store<u32>(row, load<u32>(row, ROWS) + 1, ROWS);
}

/** Adds what a row inside the document has from around it. */
function inherit(row: u32, around: u32, out: u32): u32 {
  let at = out;
  let column: u32 = load<u32>(row, INHERITED);
  for (let n = load<u32>(row, INHERITED_COUNT); n > 0; n -= 1, column += COLUMN_SIZE) {
    const slot: u32 = load<u32>(column, GIVEN);
    const place = states + SLOTS + slot * SLOT_SIZE;
    const above: u32 = load<u32>(around, COLUMNS) + slot * COLUMN_SIZE;
    let from: u32 = load<u32>(place);
    let length: u32 = load<u32>(place, 4) - from;
    if (from == 0) {
      from = load<u32>(above, GIVEN);
      length = load<u32>(above, GIVEN_LENGTH);
      if (length == 0) continue;
    }
    at = copy(load<u32>(column, HEAD), load<u32>(column, HEAD_LENGTH), at);
    at = copy(from, length, at);
  }
  return at;
}

/** Sixteen bytes at a time, the last of which may be too many. */
function copy(from: u32, length: u32, at: u32): u32 {
  for (let i: u32 = 0; i < length; i += 16) v128.store(at + i, v128.load(from + i));
  return at + length;
}

/** A whole number in decimal. */
function digits(number: u32, at: u32): u32 {
  let length: u32 = 1;
  for (let rest = number / 10; rest > 0; rest /= 10) length += 1;
  let rest = number;
  for (let i = at + length; i > at; rest /= 10) store<u8>(--i, <u8>(ZERO + rest % 10));
  return at + length;
}
