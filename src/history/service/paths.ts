import { ServiceInputError } from './errors.ts';
import { text, type Field } from '../../lib/fields.ts';

/** Paths of the operations: the first group is documented by the service, the second is not. `{name}` is a parameter. */
export const DEFAULT_PATHS = {
  mealSummary: '/v2/summary/meal/{user_id}',
  listOrderSetMarkers: '/v3/lab_tests/list_order_set_markers',
  markers: '/v3/lab_tests/markers',
  labAccounts: '/v3/lab_test/lab_account',
  bulkTrigger: '/v2/link/bulk_trigger_historical_pull',
  areaInfo: '/v3/order/area/info',
  latestInsurance: '/v2/user/{user_id}/insurance/latest',
  deleteUser: '/v2/user/{user_id}',
  orders: '/orders',
  parsingJob: '/lab_report/v1/parser/job/{job_id}',

  labTests: '/v3/lab_tests',
  bulkOps: '/v2/link/bulk_op',
  historicalPulls: '/v2/introspect/historical_pull',
  listUsers: '/v2/user',
  user: '/v2/user/{user_id}',
  undoDeletion: '/v2/user/undo_delete',
  teams: '/management/v1/team',
  webhooks: '/management/v1/team/{team_id}/webhook',
  webhook: '/management/v1/team/{team_id}/webhook/{webhook_id}',
  webhookSecret: '/management/v1/team/{team_id}/webhook/{webhook_id}/secret',
} as const;

export type PathName = keyof typeof DEFAULT_PATHS;
export type Paths = Readonly<Record<PathName, string>>;

/** The defaults with overrides, which must have the same parameters. @throws ServiceInputError naming the path */
export function resolvePaths(overrides: Partial<Paths>): Paths {
  for (const [name, path] of Object.entries(overrides)) {
    if (!Object.hasOwn(DEFAULT_PATHS, name))
      throw new ServiceInputError(`paths.${name}`, 'is not a known path');
    const wanted = parametersOf(DEFAULT_PATHS[name as PathName]).join(' ');
    if (!path.startsWith('/') || /[?#]/.test(path) || parametersOf(path).join(' ') !== wanted) {
      const problem = wanted === '' ? '' : ` and contain ${wanted}`;
      throw new ServiceInputError(`paths.${name}`, `must start with /, have no query${problem}`);
    }
  }
  return { ...DEFAULT_PATHS, ...overrides };
}

/** Replaces each `{name}` by its encoded value. */
export function fillPath(path: string, values: Readonly<Record<string, string>>): string {
  return path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(values[name] ?? ''));
}

/** The path parameters, `{name}` each, sorted. */
export function parametersOf(path: string): string[] {
  return [...path.matchAll(/\{\w+\}/g)].map(([parameter]) => parameter).sort();
}

/** The paths as keys of a config. */
export const PATH_FIELDS = Object.fromEntries(
  Object.entries(DEFAULT_PATHS).map(([name, path]) => {
    const parameters = parametersOf(path);
    const hint = ['must start with /, have no query', ...parameters].join(' and contain ');
    return [name, text(path, `Path of the operation \`${name}\`.`, { pattern: patternOf(parameters), hint })];
  }),
) as Record<PathName, Field<string>>;

/** Matches a path with each of the parameters and no other. */
function patternOf(parameters: readonly string[]): string {
  const escaped = parameters.map((parameter) => parameter.replace('{', '\\{').replace('}', '\\}'));
  const each = escaped.map((parameter) => `(?=.*${parameter})`).join('');
  return `^${each}/(?:${['[^?#\\s{}]', ...escaped].join('|')})*$`;
}
