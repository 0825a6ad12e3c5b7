import { readFileSync } from 'node:fs';
import type { Command } from 'commander';
import { EXIT, messageOf, MillraceError } from '../core/errors.ts';
import { visible } from '../lib/visible.ts';
import { parseKept, type KeptReceipt } from '../privacy/receipts/kept.ts';
import { openExistingLog } from '../privacy/receipts/log-source.ts';
import { openCheckpoint, type NoteVerifier } from '../privacy/receipts/note.ts';
import { ProvingLog } from '../privacy/receipts/proving-log.ts';
import { parseProof, verifyProof } from '../privacy/receipts/proof-text.ts';
import { note, print, usageError, type Io } from './io.ts';
import { commandOf, type OptionsOf, readAs } from './options.ts';
import { writeNew } from './out-file.ts';
import { LOG_OPTIONS } from './log-options.ts';

const HELP = `
Examples:
  millrace send --count 10 > receipts.ndjson
  millrace receipt verify receipts.ndjson --log http://127.0.0.1:8080/receipts --out complete.ndjson
  millrace receipt verify complete.ndjson --key acme.example/events+1a2b3c4d+AbCd…

FILE is what a sender keeps, a line of JSON for each delivery: {"id","receipt","body_sha256"}; receipt is the header Millrace-Receipt as it
was answered, and body_base64 may stand for the hash. --log completes each receipt with the proof that it is in the log, and --out keeps
it: from then on it is verified without the receiver. A receipt that was completed before is held against --log as well: a log that was made
again is not the one it is of. --key is the key of the log, from a place you trust; without it, --log is asked.

Exit codes: 0 every receipt is proven, 1 not readable, or there is no log, 2 usage, 3 some are not in the log yet, 4 a receipt is not what the log has.`;

const OPTIONS = {
  ...LOG_OPTIONS,
  '--out <file>': 'write the receipts with their proofs to this file',
  '--json': 'print one JSON object: {proven, open, false, receipts}',
};
type Options = OptionsOf<typeof OPTIONS>;

type Judged = {
  readonly line: string;
  readonly id: string;
  readonly state: 'proven' | 'open' | 'false';
  readonly detail: string;
};

export function receiptCommand(io: Io): Command {
  const verify = commandOf('verify', OPTIONS, HELP)
    .description('prove that each delivery is in the log')
    .argument('<file>', 'receipts, one a line; - is standard input')
    .action(async (file: string, options: Options) => {
      const log = options.log === undefined ? null : await openExistingLog(options.log);
      const verifier = options.key ?? (await log?.key()) ?? null;
      if (verifier === null)
        throw usageError('name the key of the log with --key, or its address with --log');
      if (options.key === undefined)
        note(io, `the key is what ${log?.name} says: give --key to trust nobody there`);
      const lines = readAs('FILE', file, (path) => readFileSync(path === '-' ? 0 : path, 'utf8'))
        .split('\n')
        .filter((line) => line.trim() !== '');
      if (lines.length === 0) throw usageError(`${file} holds no receipt`);
      const proving = log === null ? null : new ProvingLog(log, verifier, new Set(sizesIn(lines, verifier)));
      const against = { log: proving, verifier };
      const judged: Judged[] = [];
      for (const [index, line] of lines.entries()) judged.push(await judge(line, index, against));
      if (options.out !== undefined)
        writeNew(`--out ${options.out}`, options.out, judged.map(({ line }) => `${line}\n`).join(''));
      show(io, judged, options.json === true);
    });
  return commandOf('receipt', {}, HELP)
    .description('verify the receipts that deliveries were answered with')
    .addCommand(verify);
}

interface Against {
  readonly log: ProvingLog | null;
  readonly verifier: NoteVerifier;
}

async function judge(line: string, index: number, { log, verifier }: Against): Promise<Judged> {
  let kept: KeptReceipt;
  try {
    kept = parseKept(line);
  } catch (error) {
    return { line, id: `line ${index + 1}`, state: 'false', detail: messageOf(error) };
  }
  const { id, entry, origin } = kept;
  const wrong = (detail: string): Judged => ({ line, id, state: 'false', detail });
  if (origin !== verifier.name) return wrong(`is of the log ${origin}, and the key of ${verifier.name}`);
  try {
    const proof = kept.proof ?? (await log?.proof(kept.index, entry)) ?? null;
    if (proof === null)
      return { line, id, state: 'open', detail: `entry ${kept.index} is not in the log yet` };
    const parsed = parseProof(proof);
    if (parsed.index !== kept.index) return wrong(`its proof is of entry ${parsed.index}`);
    const verdict = verifyProof(entry, parsed, verifier);
    if (!verdict.ok) return wrong(verdict.reason);
    // Without a log nothing speaks against it.
    if (kept.proof !== null && log !== null && !(await log.had(verdict.head)))
      return wrong(
        `the log is not the one that its proof is of: it had ${verdict.head.size} entries, and other ones`,
      );
    const complete = JSON.stringify({ ...(JSON.parse(line) as object), proof });
    const detail = `entry ${kept.index} of ${verdict.head.size}`;
    return { line: complete, id, state: 'proven', detail };
  } catch (error) {
    if (error instanceof MillraceError) throw error;
    return wrong(messageOf(error));
  }
}

/** How many entries logs had that kept proofs are of. */
function* sizesIn(lines: readonly string[], verifier: NoteVerifier): Generator<number> {
  for (const line of lines) {
    try {
      const { proof } = parseKept(line);
      const head = proof === null ? null : openCheckpoint(parseProof(proof).checkpoint, verifier);
      if (head !== null) yield head.size;
    } catch (error) {
      // What is no receipt is named when it is judged.
      if (!(error instanceof RangeError)) throw error;
    }
  }
}

function show(io: Io, judged: readonly Judged[], json: boolean): void {
  const count = (state: Judged['state']): number => judged.filter((one) => one.state === state).length;
  const counts = { proven: count('proven'), open: count('open'), false: count('false') };
  if (json) {
    const receipts = judged.map(({ id, state, detail }) => ({ id, state, detail }));
    print(io, JSON.stringify({ ...counts, receipts }));
  } else {
    for (const { id, state, detail } of judged)
      if (state !== 'proven') print(io, visible(`${state.padEnd(8)} ${id}: ${detail}`));
    print(
      io,
      `${counts.proven} proven, ${counts.open} not in the log yet, ${counts.false} not as the log has it`,
    );
  }
  if (counts.false > 0) io.setExit(EXIT.difference);
  else if (counts.open > 0) io.setExit(EXIT.partial);
}
