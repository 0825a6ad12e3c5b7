import { pino, type Logger } from 'pino';
import type { Io } from './io.ts';

/** JSON lines on stderr: stdout belongs to results, and to the stdout sink. */
export function createLog(io: Io, level: string): Logger {
  return pino({ level, base: { pid: process.pid }, timestamp: pino.stdTimeFunctions.isoTime }, io.stderr);
}
