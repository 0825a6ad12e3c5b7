import type { Command } from 'commander';
import type { DeadLetterSummary, QuarantineSummary } from '../../core/operations.ts';
import { formatTarget } from '../../core/route.ts';
import type { Io } from '../io.ts';
import { letterCommand } from './command.ts';

const QUARANTINE_HELP = `
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
    help: QUARANTINE_HELP,
    hasSink: false,
    keeps: 'still invalid, or id_reused, which has to be named by its key',
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

const DEAD_LETTERS_HELP = `
Examples:
  millrace dead-letters list --sink hubs
  millrace dead-letters show 3
  millrace dead-letters retry --all      to the sink that refused them, and no other
  millrace dead-letters drop 3 4`;

export function deadLettersCommand(io: Io): Command {
  return letterCommand<DeadLetterSummary>(io, {
    name: 'dead-letters',
    description: 'events that a sink has permanently refused: list, show, retry, drop',
    help: DEAD_LETTERS_HELP,
    hasSink: true,
    keeps: 'of sinks that the config does not have',
    header: ['KEY', 'DIED', 'TARGET', 'TYPE', 'BYTES', 'ID', 'CODE', 'REASON'],
    row: (letter) => [
      String(letter.key),
      letter.died_at,
      formatTarget(letter),
      letter.event_type,
      String(letter.bytes),
      letter.id,
      letter.code,
      letter.reason,
    ],
    list: (operations, selection, bodies) => operations.listDeadLetters(selection, bodies),
    retry: (operations, selection) => operations.retryDeadLetters(selection),
    drop: (operations, selection) => operations.dropDeadLetters(selection),
  });
}
