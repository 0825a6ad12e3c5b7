import type { Command } from 'commander';
import type { DeadLetterSummary } from '../../core/operations.ts';
import { formatTarget } from '../../core/route.ts';
import type { Io } from '../io.ts';
import { letterCommand } from './command.ts';

const HELP = `
Examples:
  millrace dead-letters list --sink hubs
  millrace dead-letters show 3
  millrace dead-letters retry --all      to the sink that refused them, and no other
  millrace dead-letters drop 3 4`;

export function deadLettersCommand(io: Io): Command {
  return letterCommand<DeadLetterSummary>(io, {
    name: 'dead-letters',
    description: 'events that a sink has permanently refused: list, show, retry, drop',
    help: HELP,
    hasSink: true,
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
