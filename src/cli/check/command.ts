import type { Command } from 'commander';
import { stringify } from 'yaml';
import type { LoadedConfig } from '../../config/config.ts';
import { changedKeys, printable } from '../../config/print.ts';
import { unknownNames } from '../../config/redactions.ts';
import { EXIT } from '../../core/errors.ts';
import { renderRoutes } from '../../deliver/routes/explain.ts';
import { createVerifier } from '../../receive/verify/registry.ts';
import { CONFIG, prefixWarnings, resolvedConfigOf } from '../config-options.ts';
import { type Io, note, plural, print, printReport, usageError } from '../io.ts';
import { commandOf, type OptionsOf } from '../options.ts';

const HELP = `
Examples:
  millrace check
  millrace check --resolved
  millrace check --config config/examples/prefix-routes.yaml
  millrace check --json | jq .routes
  millrace check --config new.yaml --against ./data/archive
  millrace check --config new.yaml --current old.yaml --against journal --exit-code

Unset variables are only warnings: a config can be checked on a machine without its secrets.

--against compares this config with the current one, by real events of an archive or the journal: how many would go elsewhere,
from where to where, with examples. An archive holds only events that were routed to it. Nothing is sent or changed.

Exit codes: 0 the config can be used, 2 it cannot; each problem is on its own line. With --against: 3 some records could not be
read, and with --exit-code 4 when events would go elsewhere.`;

const OPTIONS = {
  ...CONFIG,
  '--against <path>':
    'the folder or URL of an archive, or `journal`: report what this config would have done with its events',
  '--current <file>': 'the config to compare with (default: $MILLRACE_CONFIG, else config/millrace.yaml)',
  '--exit-code': 'with --against: exit with 4 when events would go elsewhere',
  '--resolved': 'print every key with its value, the defaults too',
  '--json': 'print one JSON document: file, config (milliseconds and bytes), routes, warnings',
};
type Options = OptionsOf<typeof OPTIONS>;

export function checkCommand(io: Io): Command {
  return commandOf('check', OPTIONS, HELP)
    .description(
      'validate the config; print what differs from the defaults, without its secrets, and the route table',
    )
    .action(async (options: Options) => {
      const loaded = await resolvedConfigOf(options, io);
      const { signing } = loaded.config;
      const isUnset = loaded.unset.some((key) => key.startsWith('signing.secrets'));
      if (signing.secrets.length > 0 || !isUnset) createVerifier(signing);
      const { file, config: checked } = loaded;
      const warnings = [
        ...loaded.warnings,
        ...(io.envWarnings?.() ?? []),
        ...unknownNames(checked.routes),
        ...(await prefixWarnings(checked)),
      ];
      // Loaded late, because the tables are large.
      if (checked.tables.length > 0)
        await (await import('../../tables/tables.ts')).tablesWith(checked.tables);
      for (const warning of warnings) note(io, `warning: ${warning}`);
      if (options.against !== undefined) return compare(io, options.against, loaded, options);
      if (options.current !== undefined || options.exitCode === true)
        throw usageError('--current and --exit-code go with --against');
      if (options.json === true) {
        const config = printable(loaded, 'numbers', loaded.schemas);
        const routes = loaded.config.routes.map((route, index) => ({ index, ...route }));
        print(io, JSON.stringify({ file, config, routes, warnings }, null, 2));
        return;
      }
      const all = options.resolved === true;
      const document = all ? printable(loaded, 'text', loaded.schemas) : changedKeys(loaded);
      const also = warnings.length === 0 ? '' : `, with ${plural(warnings.length, 'warning')}`;
      print(io, `# ${file}: valid${also}\n${stringify(document, { lineWidth: 0 })}`);
      print(io, renderRoutes(loaded.config.routes));
    });
}

async function compare(io: Io, against: string, loaded: LoadedConfig, options: Options): Promise<void> {
  // Loaded late: checking a config needs no journal and no archive.
  const { checkAgainst, currentConfig, renderAgainst } = await import('./against.ts');
  const current = await currentConfig(io, options.current, loaded);
  const report = await checkAgainst(io, against, loaded, current);
  printReport(io, options, report, () => renderAgainst(report));
  if (options.exitCode === true && report.changed > 0) io.setExit(EXIT.difference);
}
