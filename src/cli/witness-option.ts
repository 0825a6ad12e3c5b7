import { Option } from 'commander';
import { parseCosigner, type NoteVerifier } from '../receipts/note.ts';
import { readAs } from './options.ts';

/** `--witness <key>`, of commands that hold something against a log of receipts. */
export function witnessOption(): Option {
  return new Option('--witness <key>', 'who must have signed the log too; may be repeated').argParser<
    readonly NoteVerifier[]
  >((text, before) => [...(before ?? []), readAs('--witness', text, parseCosigner)]);
}
