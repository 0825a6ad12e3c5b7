import type { Command } from 'commander';
import { parseVerifier, type NoteVerifier } from '../receipts/note.ts';
import { option } from './options.ts';

export interface LogOptions {
  readonly log?: string;
  readonly key?: NoteVerifier;
}

/** For commands that hold something against a log of receipts. */
export function addLogOptions(command: Command): Command {
  return command
    .option('--log <place>', 'the log: its address, such as http://127.0.0.1:8080/receipts, or its folder')
    .addOption(option('--key <key>', 'public key of the log', parseVerifier));
}
