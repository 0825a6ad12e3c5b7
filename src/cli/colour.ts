import { styleText } from 'node:util';
import type { Writable } from 'node:stream';
import type { Io } from './io.ts';

export type Style = Parameters<typeof styleText>[0];

/**
 * Whether a stream is written in colours: a terminal that can show them, unless NO_COLOR says not to; with FORCE_COLOR
 * always, whatever NO_COLOR says, as Node itself has it.
 */
export function hasColours(stream: Writable & { isTTY?: boolean }, env: Io['env']): boolean {
  const forced = env['FORCE_COLOR'] ?? '';
  if (forced !== '') return forced !== '0' && forced !== 'false';
  return stream.isTTY === true && (env['NO_COLOR'] ?? '') === '' && env['TERM'] !== 'dumb';
}

export function styled(style: Style, text: string, isColoured: boolean): string {
  return isColoured ? styleText(style, text, { validateStream: false }) : text;
}
