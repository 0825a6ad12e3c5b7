import { pino, type Logger } from 'pino';
import type { Config } from '../config/config.ts';
import { visible, visibleLines } from '../lib/visible.ts';
import { hasColours, type Style, styled, type Io } from './io.ts';

type LogOptions = Pick<Config['log'], 'level'> & Partial<Config['log']>;

/** The log on stderr: lines of text on a terminal, lines of JSON elsewhere, or what log.format says. */
export function createLog(io: Io, { level, format = 'auto' }: LogOptions): Logger {
  const isText = format === 'text' || (format === 'auto' && io.stderr.isTTY === true);
  const base = { pid: process.pid };
  const options = { level, base, timestamp: pino.stdTimeFunctions.isoTime };
  if (!isText) return pino(options, io.stderr);
  const isColoured = hasColours(io.stderr, io.env);
  return pino(options, { write: (line) => void io.stderr.write(`${readable(line, isColoured)}\n`) });
}

const LEVELS: Readonly<Record<number, readonly [name: string, style: Style]>> = {
  10: ['trace', 'dim'],
  20: ['debug', 'dim'],
  30: ['info ', 'green'],
  40: ['warn ', 'yellow'],
  50: ['error', 'red'],
  60: ['fatal', ['bold', 'red']],
};

/** A line of pino as text: `12:00:01.250 warn  message  key=value`, with the stack of an error below. */
function readable(line: string, isColoured: boolean): string {
  const { level, time, pid: _pid, msg, err, ...fields } = JSON.parse(line) as Record<string, unknown>;
  const [name, style] = LEVELS[Number(level)] ?? [String(level), 'dim'];
  const { stack, message } = Object(err) as { stack?: string; message?: string };
  const parts = [
    styled('dim', String(time).slice(11, 23), isColoured),
    styled(style, name, isColoured),
    visible(typeof msg === 'string' ? msg : (message ?? '')),
    ...Object.entries(fields).map(
      ([key, value]) => `${styled('dim', `${visible(key)}=`, isColoured)}${visible(textOf(value))}`,
    ),
  ];
  const below = stack === undefined ? [] : visibleLines(stack).split('\n');
  return [parts.join('  '), ...below.map((each) => `  ${each}`)].join('\n');
}

function textOf(value: unknown): string {
  return typeof value === 'string' && /^[^\s"=]+$/.test(value) ? value : JSON.stringify(value);
}
