import type { ByteWriter } from '../../lib/byte-writer.ts';
import { copy, copyJson, copyText } from '../../lib/json-compact.ts';
import { CLOSE_BRACE, COMMA, OPEN_BRACE } from '../../lib/json-text.ts';
import { copyTime } from './time.ts';
import { ROW_ID } from '../definition.ts';
import type { RowPlan } from './plan.ts';
import type { RowState } from './row-state.ts';

const LINE_FEED = 10;

/** In front of the value with which a row begins. */
const ROW_ID_HEAD = Buffer.from(`{${JSON.stringify(ROW_ID.name)}:`);

/** Begins a row whose key is unknown. */
export function writeRowId(out: ByteWriter, id: Uint8Array): void {
  out.append(ROW_ID_HEAD);
  out.append(id);
}

/**
 * Adds one row: a JSON object of the columns that have a value, in the order of `columnsInRow`, and a line feed.
 * @param id null where the key is known, or what tells the row apart is written in front of it later
 */
export function writeRow(out: ByteWriter, row: RowState, bytes: Uint8Array, id: Uint8Array | null): void {
  const { columns, position, repetition, extra: extraSlot } = row.plan;
  const extra = row.extra.finish();
  // No value grows beyond twice its text, and each stands in the document once.
  out.room(row.room + bytes.length * 2 + extra.length + ROW_ID_HEAD.length + (id?.length ?? 0));
  const { buffer } = out;
  const start = out.length;
  let at = start;
  if (id !== null) {
    at = copy(ROW_ID_HEAD, 0, ROW_ID_HEAD.length, buffer, at);
    at = copy(id, 0, id.length, buffer, at);
  }
  for (let slot = 0; slot < columns.length; slot += 1) {
    const from = row.from[slot] as number;
    const column = columns[slot] as RowPlan['columns'][number];
    if (from >= 0) {
      row.filled[slot] = (row.filled[slot] as number) + 1;
      at = copy(column.head, 0, column.head.length, buffer, at);
      at = copierOf(column)(bytes, from, row.to[slot] as number, buffer, at);
    } else if (slot === position) {
      at = copy(column.head, 0, column.head.length, buffer, at);
      at += buffer.write(String(row.position), at, 'latin1');
    } else if (slot === repetition) {
      if (row.repetition === 0) continue;
      at = copy(column.head, 0, column.head.length, buffer, at);
      at += buffer.write(String(row.repetition), at, 'latin1');
    } else if ((row.given[slot] as Uint8Array).length > 0) {
      const given = row.given[slot] as Uint8Array;
      at = copy(column.head, 0, column.head.length, buffer, at);
      at = copy(given, 0, given.length, buffer, at);
    } else if (slot === extraSlot && extra.length > 0) {
      at = copy(column.head, 0, column.head.length, buffer, at);
      at = copy(extra, 0, extra.length, buffer, at);
    }
  }
  const tail = row.tail();
  at = copy(tail.buffer, 0, tail.length, buffer, at);
  // Every column came with a comma in front; the first one's place is the brace's.
  if (at === start) {
    buffer[at] = COMMA;
    at += 1;
  }
  buffer[start] = OPEN_BRACE;
  buffer[at] = CLOSE_BRACE;
  buffer[at + 1] = LINE_FEED;
  out.length = at + 2;
}

/** Adds what the rows inside this one inherit, as `,"name":value` for each column that has a value. */
export function writeInherited(out: ByteWriter, row: RowState, nested: RowPlan, bytes: Uint8Array): void {
  for (const { head, slot } of nested.inherited) {
    const from = row.from[slot] as number;
    if (from < 0) {
      const value = slot === row.plan.extra ? row.extra.finish() : (row.given[slot] as Uint8Array);
      if (value.length === 0) continue;
      out.append(head);
      out.append(value);
      continue;
    }
    const to = row.to[slot] as number;
    out.room(head.length + (Math.abs(to) - from) * 2);
    const at = copy(head, 0, head.length, out.buffer, out.length);
    out.length = copierOf(row.plan.columns[slot])(bytes, from, to, out.buffer, at);
  }
}

function copierOf(column: RowPlan['columns'][number] | undefined): typeof copyText {
  if (column?.type === 'timestamp') return copyTime;
  return column?.type === 'json' ? copyJson : copyText;
}
