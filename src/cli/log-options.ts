import { type Command, Option } from 'commander';
import { parseCosigner, parseVerifier, type NoteVerifier } from '../receipts/note.ts';
import { option, readAs } from './options.ts';

export interface LogOptions {
  readonly log?: string;
  readonly key?: NoteVerifier;
  readonly witness?: readonly NoteVerifier[];
}

/** For commands that hold something against a log of receipts. */
export function addLogOptions(command: Command): Command {
  const witness = new Option('--witness <key>', 'who must have signed the log too; may be repeated');
  witness.argParser<readonly NoteVerifier[]>((text, before) => [
    ...(before ?? []),
    readAs('--witness', text, parseCosigner),
  ]);
  return command
    .option('--log <place>', 'the log: its address, such as http://127.0.0.1:8080/receipts, or its folder')
    .addOption(option('--key <key>', 'public key of the log', parseVerifier))
    .addOption(witness);
}
