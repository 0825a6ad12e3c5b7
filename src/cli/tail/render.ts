import { once } from 'node:events';
import type { TailLine, TailOutcome } from '../../core/tail.ts';
import { formatBytes } from '../../lib/units.ts';
import { visible, visibleLines } from '../../lib/visible.ts';
import { type Style, styled, type Io } from '../io.ts';

const STYLES: Readonly<Record<TailOutcome, Style>> = {
  accepted: 'green',
  delivered: 'green',
  duplicate: 'cyan',
  erased: 'cyan',
  quarantined: 'yellow',
  retried: 'yellow',
  refused: 'red',
  dead: 'red',
};
const WIDTH = 11;

/** Writes a line, whose parts are visible already, and waits for whoever reads: what sends it then counts what it leaves out. */
export async function writeLine(io: Io, text: string): Promise<void> {
  if (!io.stdout.write(`${text}\n`))
    await once(io.stdout, 'drain', { signal: io.signal }).catch(() => undefined);
}

/** One line for a person; with a body, more lines below it. */
export function render(line: TailLine, isColoured: boolean): string {
  const { at, outcome, id, event_type, user_id, bytes, sink, destination, ms, code, reason } = line;
  const dim = (text: string): string => styled('dim', visible(text), isColoured);
  const target = destination === null || destination === undefined ? sink : `${sink}:${destination}`;
  const parts = [
    dim(at.slice(11, 23)),
    styled(STYLES[outcome], outcome.padEnd(WIDTH), isColoured),
    ...(event_type === undefined ? [] : [visible(event_type)]),
    ...(target === undefined ? [] : [`→ ${visible(target)}`]),
    ...(ms === undefined ? [] : [`${ms} ms`]),
    ...(code === undefined ? [] : [visible(code)]),
    ...(reason === undefined ? [] : [visible(reason)]),
    ...(user_id === undefined || user_id === null || sink !== undefined ? [] : [`user ${visible(user_id)}`]),
    ...(bytes === undefined || sink !== undefined ? [] : [dim(formatBytes(bytes))]),
    ...(id === undefined ? [] : [dim(id)]),
  ];
  return [parts.join('  '), ...bodyOf(line)].join('\n');
}

function bodyOf({ body_base64 }: TailLine): string[] {
  if (body_base64 === undefined) return [];
  return [`    ${visibleLines(Buffer.from(body_base64, 'base64').toString('utf8'))}`];
}
