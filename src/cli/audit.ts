import type { Command } from 'commander';
import { AUDIT, auditKey, type AuditEntry } from '../observe/admin/audit.ts';
import { hashedId } from '../core/delivery-id.ts';
import { EXIT } from '../core/errors.ts';
import { ownerFolder } from '../journal/owner.ts';
import { verifyChain, type ChainedLine, type ChainReport } from '../lib/verify-chain.ts';
import { note, printList, printResult, type Io } from './io.ts';
import { CONFIG, type ConfigFlags, configOf } from './config-options.ts';
import { commandOf, type OptionsOf, readBy, wholeNumber } from './options.ts';

const HELP = `
Examples:
  millrace audit list --limit 20
  millrace audit list --id msg_2a4f       who has seen or dropped this delivery
  millrace audit list --json | jq 'select(.action == "show")'
  millrace audit verify
  millrace audit verify --head 6e0b…      a hash that an earlier verify printed

The log records who read which bodies, and who dropped, retried, replayed (in the console) or erased what. It is audit.jsonl
beside the journal, or in erasure.path with acknowledge: delivered. Actors: config (admin.token), owner (the commands' token),
console (a browser session), command (it had the journal to itself), receiver (a due erasure). The log has no bodies and no user
ids. Ids of events are hashed with audit.key beside it, because the log outlives the events.

Each line has the hash of the line before it. Someone who can write to the folder can rewrite the whole log: to detect that,
compare it with a head that is stored elsewhere.

Exit codes: 0 unchanged, 1 audit.key is missing or damaged (--id), 2 usage or config, 4 lines are missing or were changed.`;

const LIST = {
  ...CONFIG,
  '--json': 'print a line of JSON for each entry',
  '--limit <n>': readBy(wholeNumber(1), 'show at most this many entries', '50'),
  '--id <id>': 'show only entries about the event with this delivery id',
};
const VERIFY = {
  ...CONFIG,
  '--json': 'print one JSON object',
  '--head <hash>': 'the log must hold a line with this hash',
};

export function auditCommand(io: Io): Command {
  const list = commandOf('list', LIST, HELP)
    .description('the newest entries, oldest first')
    .action(async (options: OptionsOf<typeof LIST>) => {
      const { limit, id } = options;
      const folder = folderOf(io, options);
      const hashed = id === undefined ? undefined : hashedId((await auditKey(folder)) ?? '', id);
      const newest: (ChainedLine & AuditEntry)[] = [];
      const { problems } = await verifyAudit(folder, {
        onLine: (line) => {
          const entry = line as ChainedLine & Partial<AuditEntry>;
          if (hashed !== undefined && entry.ids?.includes(hashed) !== true) return;
          newest.push(line as ChainedLine & AuditEntry);
          if (newest.length > limit) newest.shift();
        },
      });
      printList(io, options, newest, ['N', 'AT', 'WHO', 'ACTION', 'WHAT', 'IDS'], row);
      if (problems.length > 0) note(io, 'the log was changed: `millrace audit verify` says where');
    });
  const verify = commandOf('verify', VERIFY, HELP)
    .description('check the hash chain of the log')
    .action(async (options: OptionsOf<typeof VERIFY>) => {
      const head = options.head?.toLowerCase();
      const report = await verifyAudit(folderOf(io, options), head === undefined ? {} : { head });
      const { lines, first, head: last, problems } = report;
      printResult(
        io,
        options,
        report,
        ...problems.map((problem) => `difference ${problem}`),
        `${lines} lines${first > 1 ? ` from ${first} on` : ''}, head ${last.hash}`,
      );
      if (problems.length > 0) io.setExit(EXIT.difference);
    });
  return commandOf('audit', {}, HELP)
    .description('who read which bodies, and who dropped, retried or erased what: list, verify')
    .addCommand(list)
    .addCommand(verify);
}

/** A missing log is a problem when its key exists: the first line creates the key. */
async function verifyAudit(folder: string, options: Parameters<typeof verifyChain>[2]): Promise<ChainReport> {
  const report = await verifyChain(folder, AUDIT, options);
  if (report.lines > 0 || report.problems.length > 0 || (await auditKey(folder)) === null) return report;
  return { ...report, problems: [`${AUDIT}.jsonl is missing: ${AUDIT}.key says that there was one`] };
}

function folderOf(io: Io, options: ConfigFlags): string {
  return ownerFolder(configOf(options, io).config);
}

/** Ids in a row of the table. */
const SHOWN = 3;

function row({ n, at, who, action, what, ids, cleared }: ChainedLine & AuditEntry): string[] {
  if (cleared !== undefined) return [String(n), at, 'receiver', 'clear', 'audit', `1 to ${cleared}`];
  const more = ids.length > SHOWN ? ` and ${ids.length - SHOWN} more` : '';
  return [String(n), at, who, action, what, ids.slice(0, SHOWN).join(' ') + more];
}
