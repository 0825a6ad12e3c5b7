/** The tests that every built-in sink passes, for a sink of your own to pass with any test runner. */
export { sinkContract, type ContractSubject, type ContractTest } from '../sinks/contract.ts';
export type { Arrived } from '../sinks/contract-checks.ts';
