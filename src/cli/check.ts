import { Command } from 'commander';
import { stringify } from 'yaml';
import { loadConfig } from '../config/load.ts';
import { printable } from '../config/print.ts';
import { resolveSinks, type LoadSinkModule } from '../config/sinks.ts';
import { renderRoutes } from '../route/render.ts';
import { createVerifier } from '../verify/registry.ts';
import { note, print, type Io } from './io.ts';

const HELP = `
Examples:
  millrace check
  millrace check --config config/examples/prefix-routes.yaml
  millrace check --json | jq .routes

Variables that are not set here are warnings, so that a config can be checked on a machine without its secrets.
Exit codes: 0 the config can be used, 2 it cannot; every problem is named, a line each.`;

/**
 * `millrace check`: validates the config with all of its sinks' options, then prints it resolved and redacted.
 * @param loadModule finds sink modules; only tests pass their own.
 */
export function checkCommand(io: Io, loadModule: LoadSinkModule = builtIn): Command {
  return new Command('check')
    .description('validate the config; print it as resolved, without its secrets, and the route table')
    .option('--config <file>', 'the config file (default: $MILLRACE_CONFIG, else config/millrace.yaml)')
    .option('--json', 'print one JSON document: file, config (milliseconds and bytes), routes, warnings')
    .addHelpText('after', HELP)
    .action(async (options: { config?: string; json?: boolean }) => {
      const loaded = loadConfig({ file: options.config, env: io.env, lenient: true });
      // A sink cannot judge a placeholder; it gets its say once the variable is set.
      const complete = Object.keys(loaded.config.sinks).filter(
        (name) => !loaded.unset.some((key) => key.startsWith(`sinks.${name}.`)),
      );
      await resolveSinks(loaded, loadModule, complete);
      const { signing } = loaded.config;
      const awaited = loaded.unset.some((key) => key.startsWith('signing.secrets'));
      if (signing.secrets.length > 0 || !awaited) createVerifier(signing);
      const { file, warnings } = loaded;
      for (const warning of warnings) note(io, `warning: ${warning}`);
      if (options.json === true) {
        const config = printable(loaded, 'numbers');
        const routes = loaded.config.routes.map((route, index) => ({ index, ...route }));
        print(io, JSON.stringify({ file, config, routes, warnings }, null, 2));
        return;
      }
      print(io, `# ${file}, resolved\n${stringify(printable(loaded, 'text'), { lineWidth: 0 })}`);
      print(io, renderRoutes(loaded.config.routes));
    });
}

async function builtIn(type: string, baseFolder: string): ReturnType<LoadSinkModule> {
  const { loadSinkModule } = await import('../sinks/registry.ts');
  return loadSinkModule(type, baseFolder);
}
