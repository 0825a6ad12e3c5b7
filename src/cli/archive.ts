import { realpath } from 'node:fs/promises';
import { isAbsolute } from 'node:path';
import type { Command } from 'commander';
import { nameOf } from '../archive/place.ts';
import { urlOf } from '../archive/places.ts';
import type { RepairAction } from '../archive/repair-plan.ts';
import { repairArchive } from '../archive/repair.ts';
import type { Difference, VerifyReport } from '../archive/report.ts';
import { verifyArchive, type VerifyOptions } from '../archive/verify.ts';
import type { Config } from '../config/config.ts';
import { eachSecret } from '../config/secrets.ts';
import { MANIFEST } from '../core/archive.ts';
import { SEGMENTS } from '../archive/segments.ts';
import { EXIT } from '../core/errors.ts';
import { isStoreUrl } from '../core/place.ts';
import type { Verifier } from '../core/verifier.ts';
import { visible } from '../lib/visible.ts';
import { receiptsIn } from '../privacy/erase/receipt.ts';
import { openProof, readProof } from '../privacy/proof/open.ts';
import { createEnvelopeCheck } from '../receive/validate/kept-envelope.ts';
import { createVerifier } from '../receive/verify/registry.ts';
import { compactCommand } from './archive-compact.ts';
import { proveCommand } from './archive-prove.ts';
import { actAsOwnerOf } from './as-owner.ts';
import { configOf } from './config-options.ts';
import { placed } from './file-reports.ts';
import { note, print, printReport, usageError, type Io } from './io.ts';
import { KEY_OPTIONS, openerOf, PUBLIC_KEY } from './key-options.ts';
import { commandOf, type OptionsOf, readAs, repeated, textOf } from './options.ts';
import { withArchives } from './places.ts';
import { StatusLine } from './status-line.ts';

const HELP = `
Examples:
  millrace archive verify ./data/archive
  millrace archive verify ./data/archive --config config/millrace.yaml --secret-file retired-secrets.txt
  millrace archive verify s3://acme/archive --config config/millrace.yaml
  millrace archive verify ./data/archive --secret-env MILLRACE_SECRET --secret-env OLD_SECRET --json
  millrace archive verify ./data/archive --repair --dry-run
  millrace archive verify s3://acme/archive --config config/millrace.yaml --repair

Signatures are checked when secrets are given. --config uses all secrets of its signing section; --secret-env names a variable
and --secret-file a file (one secret a line, # begins a comment). These are Standard Webhooks secrets unless --config says
otherwise. Type and ids of each record are compared with its body, by the names in the envelope section of --config.
Manifest lines are signed too. --config finds the key, the receipts of erasures and the last noted head; --public-key gives only
the key. Without either, one key must have signed all lines; lines from before signing began are counted as unsigned. Sealed
records are opened with the keys of --config or --keys; without keys they are only counted.

--repair removes temporary files and a last manifest line that a crash cut short, restores listed names of moved files, and
lists complete files that are missing from the manifest, signed with the key of --config. These are proven only from then on.
It changes no record, file or existing manifest line, and leaves a broken or forged chain as it is: restore the manifest from a
backup. In a store it only lists complete files that are at least 15 minutes old; a writer that was killed leaves such files.

The printed head is the hash of the last manifest line. Store it elsewhere, and pass it as --head later to prove that the end
was not cut off.

Exit codes: 0 everything matches, 1 not readable, 2 usage or config, 4 a difference, also after an incomplete repair and after
--dry-run.`;

const OPTIONS = {
  ...KEY_OPTIONS,
  '--config <file>': 'check signatures by the signing section of this config',
  '--secret-env <name>': repeated('check with the secret in this variable'),
  '--secret-file <file>': repeated('check with the secrets in this file'),
  '--head <sha256>': 'head that an earlier run printed; the manifest must still contain it',
  ...PUBLIC_KEY,
  '--repair': 'make the safe repairs, then verify again',
  '--dry-run': 'with --repair: only print what it would do',
  '--json':
    'print one JSON document: {path, files, records, bytes, claim_checks, manifest, signatures, sealed, envelopes, differences, notes}; with --repair also {repair: {dry_run, actions}}',
};
type Options = OptionsOf<typeof OPTIONS>;

export function archiveCommand(io: Io): Command {
  const verify = commandOf('verify', OPTIONS, HELP)
    .description('compare every file with the manifest: counts, sizes, hashes, chain and signatures')
    .argument('<path>', 'the folder of the archive, or its URL: s3://, azblob:// or gs://')
    .action(async (path: string, options: Options) => {
      if (options.dryRun === true && options.repair !== true)
        throw usageError('--dry-run goes with --repair');
      const config = options.config === undefined ? null : configOf(options, io).config;
      const verifier = verifierOf(options, config, io);
      const keyProblems: Difference[] = [];
      const opener = await openerOf(options, io, 'nothing', (file, { code, detail }) =>
        keyProblems.push({ code, file, line: null, detail }),
      );
      const status = new StatusLine(io);
      const how: VerifyOptions = {
        opener,
        verifier,
        envelopes: createEnvelopeCheck(config?.envelope ?? null),
        ...(await proofOf(path, options, config, keyProblems)),
        found: keyProblems,
        signal: io.signal,
        onProgress: (done, total, file) =>
          status.show(
            () => `reading file ${done + 1} of ${total}${status.pace(done, total)}: ${file}`,
            done + 1 === total,
          ),
      };
      const { report, actions } = await withArchives([path], options, io, (places) =>
        verifyOrRepair(path, options, config, { ...how, places }, io),
      );
      const repair = actions === null ? {} : { repair: { dry_run: options.dryRun === true, actions } };
      printReport(io, options, { ...report, ...repair }, () => render(report, verifier !== undefined));
      if (report.differences.length > 0) io.setExit(EXIT.difference);
    });
  return commandOf('archive', {}, HELP)
    .description('inspect and compact what the files sink wrote')
    .addCommand(compactCommand(io))
    .addCommand(verify)
    .addCommand(proveCommand(io));
}

async function verifyOrRepair(
  path: string,
  options: Options,
  config: Config | null,
  how: VerifyOptions,
  io: Io,
): Promise<{ report: VerifyReport; actions: readonly RepairAction[] | null }> {
  if (options.repair !== true) return { report: await verifyArchive(path, how), actions: null };
  const dryRun = options.dryRun === true;
  if (!dryRun) actAsOwnerOf(path, MANIFEST);
  const onAction = ({ action, file, detail }: RepairAction): void => {
    const line = `${dryRun ? 'would     ' : 'repair    '} ${action.replace('_', ' ')} ${file}: ${detail}`;
    if (options.json === true) note(io, line);
    else print(io, line);
  };
  const proof = config === null ? undefined : openProof(config);
  const repair = { ...how, dryRun, now: Date.now(), onAction, proof };
  const { actions, young, after } = await repairArchive(path, repair);
  if (young.length > 0)
    note(
      io,
      `${young.length} unlisted files are too young, their writer may still list them: run it again later`,
    );
  else if (actions.length === 0) note(io, 'nothing to repair');
  return { report: after, actions };
}

/** The keys, receipts and heads that the manifest must agree with, from the config and the command line. */
async function proofOf(
  path: string,
  options: Options,
  config: Config | null,
  found: Difference[],
): Promise<Pick<VerifyOptions, 'heads' | 'trust' | 'signed'>> {
  const { publicKey, head } = options;
  if (head !== undefined && !/^[0-9a-f]{12,64}$/i.test(head))
    throw usageError(`--head ${head}: must be a hash, or its first 12 digits or more`);
  const given = head === undefined ? [] : [{ head: head.toLowerCase(), where: null }];
  const signed = publicKey.length > 0;
  if (config === null) return { heads: given, signed, trust: { keys: new Set(publicKey), receipts: null } };
  const { trusted, heads } = readProof(config);
  const noted = isStoreUrl(path)
    ? heads.notedBelow(`${urlOf(path)}/${SEGMENTS}`)
    : heads.noted(await realpath(path).catch(() => path));
  for (const { path: file, forged } of noted)
    if (forged) found.push({ code: 'head_forged', file, line: null, detail: 'it is not as it was signed' });
  const expected = noted.flatMap(({ path: where, heads: theirs }) =>
    theirs.map((one) => ({ head: one.head, where })),
  );
  return {
    heads: [...given, ...expected],
    signed,
    trust: {
      keys: new Set([...trusted, ...publicKey]),
      receipts: receiptsIn(config.erasure.path, trusted),
    },
  };
}

/** Undefined without a config and secrets. Records may be of any age. */
function verifierOf({ secretEnv, secretFile }: Options, config: Config | null, io: Io): Verifier | undefined {
  if (config === null && secretEnv.length + secretFile.length === 0) return undefined;
  const given = [
    ...secretEnv.map((name) => {
      const secret = io.env[name];
      if (secret === undefined || secret === '') throw usageError(`--secret-env ${name}: not set`);
      return secret;
    }),
    ...secretFile.flatMap(readSecrets),
  ];
  const signing = config?.signing ?? { scheme: 'standard-webhooks' as const, secrets: [] };
  // The receiver has checked which teams a secret may sign for.
  const each = eachSecret({ ...signing, secrets: [...signing.secrets, ...given] });
  const secrets = each.map(({ secret }) => secret);
  return createVerifier({ ...signing, secrets, teams: [], tolerance: Number.POSITIVE_INFINITY });
}

function readSecrets(file: string): string[] {
  const lines = readAs('--secret-file', file, textOf)
    .split('\n')
    .map((line) => line.trim());
  const secrets = lines.filter((line) => line !== '' && !line.startsWith('#'));
  if (secrets.length === 0) throw usageError(`--secret-file ${file} holds no secret`);
  return secrets;
}

function render(report: VerifyReport, checked: boolean): string {
  const { files, records, bytes, claim_checks: claims, manifest, sealed, differences, notes } = report;
  const { verified, unmatched, invalid, unsigned } = report.signatures;
  const named = (file: string): string =>
    isStoreUrl(report.path) && !isAbsolute(file) ? nameOf(report.path, file) : file;
  const lines = [
    ...notes.map(({ file, detail }) => visible(`note       ${named(file)}: ${detail}`)),
    ...differences.map(({ code, file, line, detail }) =>
      visible(`difference ${placed(named(file), line)}: ${code}: ${detail}`),
    ),
    `${files} files, ${records} records, ${bytes} bytes${claims === 0 ? '' : `, ${claims} kept events`}`,
    checked
      ? `signatures: ${verified} verified, ${unmatched} without a matching secret, ${invalid} invalid, ${unsigned} unsigned`
      : 'signatures: not checked; use --config, --secret-env or --secret-file',
  ];
  if (records > 0) lines.push(renderEnvelopes(report));
  if (sealed.opened + sealed.closed + sealed.erased > 0)
    lines.push(`sealed: ${sealed.opened} opened, ${sealed.closed} closed, ${sealed.erased} erased`);
  if (manifest.lines > 0) lines.push(...renderManifest(manifest));
  lines.push(
    differences.length === 0 ? 'everything matches the manifest' : `${differences.length} differences`,
  );
  return lines.join('\n');
}

/** Names the records that could not be compared: their ids are not verified. */
function renderEnvelopes({ envelopes: { compared, unreadable }, sealed }: VerifyReport): string {
  const left = [
    ...(sealed.closed + sealed.erased > 0 ? [`${sealed.closed + sealed.erased} sealed`] : []),
    ...(unreadable > 0 ? [`${unreadable} with a body that cannot be read`] : []),
  ];
  return `type and ids: ${compared} compared with the body${left.map((one) => `, not compared: ${one}`).join('')}`;
}

function renderManifest(manifest: VerifyReport['manifest']): string[] {
  const { lines, head, writers = [{ writer: '', lines, head }], signed, unsigned, keys, heads } = manifest;
  const vouched =
    signed > 0 ? 'from before signing began; the first signed line vouches for them' : 'not proven';
  const unknown = ': not compared with a known key; use --config or --public-key';
  return [
    writers.length === 1
      ? `manifest: ${lines} lines, head ${head}`
      : `manifest: ${lines} lines of ${writers.length} writers`,
    ...(writers.length < 2
      ? []
      : writers.map((one) => `writer ${one.writer}: ${one.lines} lines, head ${one.head}`)),
    ...keys.map(({ key, known }) => `signed by ${key}${known ? '' : unknown}`),
    ...(unsigned > 0 ? [`unsigned: ${unsigned} lines, ${vouched}`] : []),
    ...(heads > 0 ? [`heads looked for: ${heads}`] : []),
  ];
}
