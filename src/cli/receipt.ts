import type { Command } from 'commander';
import { EXIT, messageOf, MillraceError } from '../core/errors.ts';
import { visible } from '../lib/visible.ts';
import { parseKept, type KeptReceipt } from '../privacy/receipts/kept.ts';
import { openExistingLog } from '../privacy/receipts/log-source.ts';
import { openCheckpoint, type NoteVerifier } from '../privacy/receipts/note.ts';
import { ProvingLog } from '../privacy/receipts/proving-log.ts';
import { parseProof, verifyProof } from '../privacy/receipts/proof-text.ts';
import { note, printResult, usageError, type Io } from './io.ts';
import { commandOf, type OptionsOf, readAs, textOrStdin } from './options.ts';
import { writeNew } from './out-file.ts';
import { keyWarning, LOG_OPTIONS } from './log-options.ts';

const HELP = `
Examples:
  millrace send --count 10 > receipts.ndjson
  millrace receipt verify receipts.ndjson --log http://127.0.0.1:8080/receipts --out complete.ndjson
  millrace receipt verify complete.ndjson --key acme.example/events+1a2b3c4d+AbCd…

FILE is what a sender keeps, a line of JSON for each delivery: {"id","receipt","body_sha256"}. receipt is the answered header
Millrace-Receipt; body_base64 can replace the hash. --log completes each receipt with the proof that it is in the log, and --out
writes completed receipts, which are then verified without the receiver. With --log, completed receipts must also be of this log,
not of one that was replaced. --key is the key of the log, from a place you trust; without it the log is asked.

Exit codes: 0 every receipt is proven, 1 not readable, or there is no log, 2 usage, 3 some are not in the log yet,
4 a receipt differs from the log.`;

const OPTIONS = {
  ...LOG_OPTIONS,
  '--out <file>': 'write the receipts with their proofs to this file',
  '--json': 'print one JSON object: {proven, open, false, receipts}',
};
type Options = OptionsOf<typeof OPTIONS>;

interface Verdict {
  readonly line: string;
  readonly id: string;
  readonly state: 'proven' | 'open' | 'false';
  readonly detail: string;
}

export function receiptCommand(io: Io): Command {
  const verifyCommand = commandOf('verify', OPTIONS, HELP)
    .description('prove that each delivery is in the log')
    .argument('<file>', 'receipts, one a line; - is standard input')
    .action(async (file: string, options: Options) => {
      const log = options.log === undefined ? null : await openExistingLog(options.log);
      const verifier = options.key ?? (await log?.key()) ?? null;
      if (verifier === null)
        throw usageError('name the key of the log with --key, or its address with --log');
      if (options.key === undefined) note(io, keyWarning(log));
      const lines = readAs('FILE', file, textOrStdin)
        .split('\n')
        .filter((line) => line.trim() !== '');
      if (lines.length === 0) throw usageError(`${file} holds no receipt`);
      const proving = log === null ? null : new ProvingLog(log, verifier, new Set(sizesIn(lines, verifier)));
      const verdicts: Verdict[] = [];
      for (const [index, line] of lines.entries())
        verdicts.push(await verify(line, index, proving, verifier));
      if (options.out !== undefined)
        writeNew(`--out ${options.out}`, options.out, verdicts.map(({ line }) => `${line}\n`).join(''));
      show(io, verdicts, options);
    });
  return commandOf('receipt', {}, HELP)
    .description('verify the receipts that deliveries were answered with')
    .addCommand(verifyCommand);
}

/** Verifies one line, with the log or with the proof in the line. */
async function verify(
  line: string,
  index: number,
  log: ProvingLog | null,
  verifier: NoteVerifier,
): Promise<Verdict> {
  let kept: KeptReceipt;
  try {
    kept = parseKept(line);
  } catch (error) {
    return { line, id: `line ${index + 1}`, state: 'false', detail: messageOf(error) };
  }
  const { id, entry, origin } = kept;
  const wrong = (detail: string): Verdict => ({ line, id, state: 'false', detail });
  if (origin !== verifier.name) return wrong(`is of the log ${origin}, and the key of ${verifier.name}`);
  try {
    const proof = kept.proof ?? (await log?.proof(kept.index, entry)) ?? null;
    if (proof === null)
      return { line, id, state: 'open', detail: `entry ${kept.index} is not in the log yet` };
    const parsed = parseProof(proof);
    if (parsed.index !== kept.index) return wrong(`its proof is of entry ${parsed.index}`);
    const verdict = verifyProof(entry, parsed, verifier);
    if (!verdict.ok) return wrong(verdict.reason);
    if (kept.proof !== null && log !== null && !(await log.had(verdict.head)))
      return wrong(`its proof is of another log, which had ${verdict.head.size} other entries`);
    const complete = JSON.stringify({ ...(JSON.parse(line) as object), proof });
    const detail = `entry ${kept.index} of ${verdict.head.size}`;
    return { line: complete, id, state: 'proven', detail };
  } catch (error) {
    if (error instanceof MillraceError) throw error;
    return wrong(messageOf(error));
  }
}

/** Sizes of the log in the proofs of these lines. */
function* sizesIn(lines: readonly string[], verifier: NoteVerifier): Generator<number> {
  for (const line of lines) {
    try {
      const { proof } = parseKept(line);
      const head = proof === null ? null : openCheckpoint(parseProof(proof).checkpoint, verifier);
      if (head !== null) yield head.size;
    } catch (error) {
      // Reported when the line is verified.
      if (!(error instanceof RangeError)) throw error;
    }
  }
}

function show(io: Io, verdicts: readonly Verdict[], options: Options): void {
  const count = (state: Verdict['state']): number => verdicts.filter((one) => one.state === state).length;
  const counts = { proven: count('proven'), open: count('open'), false: count('false') };
  const receipts = verdicts.map(({ id, state, detail }) => ({ id, state, detail }));
  const problems = receipts.filter(({ state }) => state !== 'proven');
  printResult(
    io,
    options,
    { ...counts, receipts },
    ...problems.map(({ id, state, detail }) => visible(`${state.padEnd(8)} ${id}: ${detail}`)),
    `${counts.proven} proven, ${counts.open} not in the log yet, ${counts.false} not as the log has it`,
  );
  if (counts.false > 0) io.setExit(EXIT.difference);
  else if (counts.open > 0) io.setExit(EXIT.partial);
}
