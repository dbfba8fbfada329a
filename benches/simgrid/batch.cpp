// Sends a list of messages over a k-ary 3-tree in SimGrid and prints the makespan.
//
// Standard input: one line per terminal, the destinations of its messages in order. One byte stands for a flit, one second for a
// cycle; a channel moves one byte a second, without latency.
#include <cstdio>
#include <iostream>
#include <simgrid/s4u.hpp>
#include <sstream>
#include <string>
#include <vector>

namespace sg4 = simgrid::s4u;

static void send_all(const std::vector<sg4::Host*>* hosts, int source, std::vector<int> destinations, double bytes)
{
  for (int destination : destinations)
    sg4::Comm::sendto((*hosts)[source], (*hosts)[destination], bytes);
}

int main(int argc, char* argv[])
{
  sg4::Engine engine(&argc, argv);
  if (argc != 3) {
    std::fprintf(stderr, "usage: batch ARITY FLITS < DESTINATIONS\n");
    return 2;
  }
  const unsigned arity = std::stoul(argv[1]);
  const double bytes   = std::stod(argv[2]);

  std::vector<sg4::Host*> hosts(arity * arity * arity);
  auto make_host = [&hosts](sg4::NetZone* zone, const std::vector<unsigned long>&, unsigned long number) {
    hosts[number] = zone->create_host("terminal-" + std::to_string(number), 1.0)->seal();
    return std::make_pair(hosts[number]->get_netpoint(), static_cast<simgrid::kernel::routing::NetPoint*>(nullptr));
  };
  const sg4::FatTreeParams tree(3, {arity, arity, arity}, {1, arity, arity}, {1, 1, 1});
  sg4::create_fatTree_zone("tree", nullptr, tree, {make_host, {}, {}}, 1.0, 0.0, sg4::Link::SharingPolicy::SPLITDUPLEX)->seal();

  std::string line;
  for (int source = 0; std::getline(std::cin, line); ++source) {
    std::istringstream words(line);
    std::vector<int> destinations;
    for (int destination; words >> destination;)
      destinations.push_back(destination);
    sg4::Actor::create("sender-" + std::to_string(source), hosts[source], send_all, &hosts, source, destinations, bytes);
  }
  engine.run();
  std::printf("%.9f\n", sg4::Engine::get_clock());
  return 0;
}
