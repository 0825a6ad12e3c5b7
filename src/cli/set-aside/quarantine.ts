import type { Command } from 'commander';
import type { QuarantineSummary } from '../../core/operations.ts';
import type { Io } from '../io.ts';
import { letterCommand } from './command.ts';

const HELP = `
Examples:
  millrace quarantine list
  millrace quarantine show 17
  millrace quarantine retry --all     after a change to envelope.* that makes them valid
  millrace quarantine drop 17 18

Authentic but invalid events are kept here, byte for byte, until someone retries or drops them.`;

export function quarantineCommand(io: Io): Command {
  return letterCommand<QuarantineSummary>(io, {
    name: 'quarantine',
    description: 'authentic but invalid events: list, show, retry, drop',
    help: HELP,
    hasSink: false,
    header: ['KEY', 'RECEIVED', 'TYPE', 'BYTES', 'ID', 'REASONS'],
    row: ({ key, received_at, event_type, bytes, id, reasons }) => [
      String(key),
      received_at,
      event_type,
      String(bytes),
      id,
      reasons.map(({ code }) => code).join(' '),
    ],
    list: (operations, selection, bodies) => operations.listQuarantine(selection, bodies),
    retry: (operations, selection) => operations.retryQuarantine(selection),
    drop: (operations, selection) => operations.dropQuarantine(selection),
  });
}
