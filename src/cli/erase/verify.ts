import type { Command } from 'commander';
import { readArchive } from '../../archive/read.ts';
import { inspectArchive, type VerifyOptions } from '../../archive/verify.ts';
import { EXIT } from '../../core/errors.ts';
import { entryOfRecord } from '../../core/receipt.ts';
import { checkReceipt, type CheckedReceipt } from '../../privacy/erase/check-receipt.ts';
import { receiptsIn } from '../../privacy/erase/receipt.ts';
import { isRecord, jsonIn } from '../../lib/parsed.ts';
import { visible } from '../../lib/visible.ts';
import { readProof } from '../../privacy/proof/open.ts';
import { openLog } from '../../privacy/receipts/log-source.ts';
import { receiptsPlace } from '../../privacy/receipts/place.ts';
import { configOf } from '../config-options.ts';
import { placed } from '../file-reports.ts';
import { note, printResult, type Io } from '../io.ts';
import { KEY_OPTIONS, openerOf, PUBLIC_KEY } from '../key-options.ts';
import { LOG_OPTIONS } from '../log-options.ts';
import { commandOf, type OptionsOf, readAs, repeated, textOrStdin } from '../options.ts';
import { writeNew } from '../out-file.ts';
import { withArchives } from '../places.ts';
import { proofsOf, type Findings } from './proofs.ts';

const HELP = `
Examples:
  millrace erase verify ./data/erasure/receipts/9f86d081884c7d65.json --config config/millrace.yaml
  millrace erase verify receipt.json --public-key mHk3… --log http://127.0.0.1:8080/receipts --out complete.json
  millrace erase verify complete.json --public-key mHk3… --key acme.example/events+1a2b3c4d+AbCd… --archive s3://acme/archive

Lets someone verify an erasure without learning whose data it was. RECEIPT is a file of erasure.path/receipts. It must be as it was
signed. With --log, each entry that it names must be in the signed log of receipts; an entry that is not there may be in an earlier
log: verify again with its --log and --key. --out keeps the proofs beside the receipt, which is then verified without the log. With
--archive, the archive must have no record of these entries and no file from before the erasure, and must match its manifest.
Sealed records without a key are only counted.

--public-key is the key of receipts, from \`millrace keys public\`; --key is the key of the log. Get both from a place you trust:
without them the receipt and the log vouch for themselves. The receipt does not show the user: entries are salted, the salts were
erased with the events, and subject_hash is keyed.

Exit codes: 0 verified, 1 not readable, 2 usage or config, 3 entries are not proven, 4 a difference.`;

const OPTIONS = {
  ...KEY_OPTIONS,
  ...LOG_OPTIONS,
  '--config <file>': 'the config, for its keys, its log and its receipts',
  ...PUBLIC_KEY,
  '--archive <place>': repeated('folder or URL of an archive'),
  '--out <file>': 'write the receipt with its proofs to this file',
  '--json':
    'print one JSON object: {receipt, signed_by, records_removed, not_searched, not_reached, entries, proven, unproven, archives, differences}',
};
type Options = OptionsOf<typeof OPTIONS>;

export function eraseVerifyCommand(io: Io): Command {
  return commandOf('verify', OPTIONS, HELP)
    .description('verify the receipt of an erasure, without learning whose it was')
    .argument('<receipt>', 'its file, or one that --out wrote; - is standard input')
    .action(async (file: string, given: Options, command: Command) => {
      // Commander gives options before `verify` to `erase`.
      const options: Options = { ...command.parent?.opts(), ...given };
      const report = await verify(file, options, io);
      printResult(io, options, report, ...linesOf(report));
      if (report.differences.length > 0) io.setExit(EXIT.difference);
      else if (report.unproven.length > 0) io.setExit(EXIT.partial);
    });
}

async function verify(file: string, options: Options, io: Io) {
  const { publicKey, archive: archives } = options;
  const config = options.config === undefined ? null : configOf(options, io).config;
  const trusted = new Set([...publicKey, ...(config === null ? [] : readProof(config).trusted)]);
  const given = receiptIn(file);
  const checked = readAs('RECEIPT', file, () => checkReceipt(given.text, trusted));
  if (trusted.size === 0)
    note(io, `verified with the key that it names itself, ${checked.signedBy ?? 'none'}: give --public-key`);
  const { receipt } = checked;
  const differences = [...checked.problems];
  const own = config === null ? null : await receiptsPlace(config, false);
  const place = options.log ?? own?.folder;
  const log = place === undefined ? null : openLog(place);
  const entries = entriesOf(checked);
  const findings: Findings = { differences, unproven: [] };
  const proofs = await proofsOf(
    entries,
    given.proofs,
    { log, io, key: options.key ?? own?.verifier, head: receipt.log ?? null },
    findings,
  );
  const trust = {
    keys: trusted,
    receipts: config === null ? null : receiptsIn(config.erasure.path, trusted),
  };
  const opener = await openerOf(options, io, 'nothing');
  const found: Awaited<ReturnType<typeof searchArchive>>[] = [];
  await withArchives(archives, options, io, async (places) => {
    const how = { places, opener, trust, signal: io.signal };
    for (const archive of archives) found.push(await searchArchive(archive, checked, how, differences));
  });
  if (options.out !== undefined) {
    const text = JSON.stringify({ receipt, proofs: Object.fromEntries(proofs ?? []) });
    writeNew(`--out ${options.out}`, options.out, `${text}\n`);
  }
  return {
    receipt: receipt.receipt,
    signed_by: checked.signedBy,
    records_removed: receipt.records_removed,
    not_searched: receipt.not_searched,
    not_reached: receipt.not_reached ?? [],
    /** Entries of the log that the receipt names. */
    entries: entries.length,
    /** Null when the log was not asked. */
    proven: proofs?.size ?? null,
    ...findings,
    archives: found,
  };
}

/** A receipt, or a file of --out with proofs beside the receipt. */
function receiptIn(file: string): { readonly text: string; readonly proofs: ReadonlyMap<string, string> } {
  const text = readAs('RECEIPT', file, textOrStdin);
  const value = jsonIn(text);
  if (!isRecord(value) || !isRecord(value['receipt'])) return { text, proofs: new Map() };
  const proofs = isRecord(value['proofs']) ? Object.entries(value['proofs']) : [];
  return {
    text: JSON.stringify(value['receipt']),
    proofs: new Map(proofs.map(([entry, proof]) => [entry, String(proof)])),
  };
}

/** Entries in base64, each once: an event can have been in several files. */
function entriesOf({ receipt }: CheckedReceipt): string[] {
  const all = receipt.items.flatMap(({ entries }) => (Array.isArray(entries) ? entries : []));
  return [...new Set(all.map(String))];
}

/** Verifies an archive, and looks for erased events in it. */
async function searchArchive(
  archive: string,
  checked: CheckedReceipt,
  how: Pick<VerifyOptions, 'places' | 'opener' | 'trust' | 'signal'>,
  differences: string[],
) {
  const entries = new Set(entriesOf(checked));
  const before = new Set(checked.receipt.items.flatMap(({ sha256_before: hash }) => hash ?? []));
  const { report, files } = await inspectArchive(archive, how);
  for (const { code, file, line, detail } of report.differences)
    differences.push(`${archive}: ${placed(file, line)}: ${code}: ${detail}`);
  for (const [file, { sha256 }] of files)
    if (before.has(sha256)) differences.push(`${archive}: ${file} is as it was before the erasure`);
  /** Sealed records without a key. */
  let closed = 0;
  for await (const item of readArchive(archive, { ...how, parts: true })) {
    if (item.kind === 'problem') closed += item.sealed === undefined ? 0 : 1;
    else if (entries.has(entryOfRecord(item.record, item.body)?.toString('base64') ?? ''))
      differences.push(`${archive}: ${item.file}:${item.line} is an event that the receipt says was erased`);
  }
  return { archive, files: report.files, records: report.records, closed };
}

function linesOf(report: Awaited<ReturnType<typeof verify>>): string[] {
  const { receipt, signed_by: by, records_removed: records, entries, proven } = report;
  const { unproven, archives, differences } = report;
  const inLog = proven === null ? 'not verified: use --log' : `${proven} proven to be in the log`;
  const verdict =
    unproven.length === 0 ? 'the receipt is verified' : `${unproven.length} entries are not proven`;
  return [
    `receipt    ${receipt}: ${records} records removed, ${by === null ? 'not signed' : `signed by ${by}`}`,
    ...report.not_searched.map((item) => `not searched by the erasure: ${item}`),
    ...report.not_reached.map((sink) => `not reached by the erasure: sink ${sink}`),
    `entries    ${entries === 0 ? 'none' : `${entries}, ${inLog}`}`,
    ...archives.map(({ archive, files, records: read, closed }) => {
      const sealed = closed === 0 ? '' : `, ${closed} sealed without a key, which could not be checked`;
      return `archive    ${archive}: ${files} files, ${read} records${sealed}`;
    }),
    ...unproven.map((one) => `open       ${one}`),
    ...differences.map((one) => `difference ${one}`),
    differences.length === 0 ? verdict : `${differences.length} differences`,
  ].map(visible);
}
