#include "rondo/core/linked_list.hpp"

#include <gtest/gtest.h>

#include <string>

namespace {

using rondo::linked_chain;
using rondo::linked_list;
using rondo::list_hook;
using rondo::plain_link;

struct carriage : list_hook<carriage, plain_link> {
    char mark = 'c';
};

class guest : list_hook<guest>, public carriage {
  public:
    explicit guest(char name) : name_(name) {}
    char name() const { return name_; }

  private:
    friend linked_list<guest>;
    friend linked_chain<guest>;
    char name_;
};

std::string names(linked_list<guest> const& line) {
    std::string all;
    for (guest const* g = line.front(); g != nullptr; g = line.after(*g)) all += g->name();
    return all;
}

struct LinkedList : testing::Test {
    guest a{'a'};
    guest b{'b'};
    guest c{'c'};
    linked_list<guest> line;
};

TEST_F(LinkedList, IsEmptyToBeginWith) {
    EXPECT_TRUE(line.empty());
    EXPECT_EQ(line.front(), nullptr);
    EXPECT_EQ(line.back(), nullptr);
    EXPECT_EQ(line.pop_front(), nullptr);
}

TEST_F(LinkedList, KeepsTheOrderInWhichNodesWerePut) {
    line.push_back(b);
    line.push_back(c);
    line.push_front(a);
    EXPECT_EQ(names(line), "abc");
    EXPECT_EQ(line.front(), &a);
    EXPECT_EQ(line.back(), &c);
    EXPECT_EQ(line.pop_front(), &a);
    EXPECT_EQ(line.pop_front(), &b);
    EXPECT_EQ(line.pop_front(), &c);
    EXPECT_TRUE(line.empty());
}

TEST_F(LinkedList, LetsANodeGoFromWhereverItIs) {
    for (guest* leaver : {&a, &b, &c}) {
        for (guest* g : {&a, &b, &c}) line.push_back(*g);
        linked_list<guest>::remove(*leaver);
        EXPECT_FALSE(linked_list<guest>::is_linked(*leaver));
        std::string others = "abc";
        others.erase(others.find(leaver->name()), 1);
        EXPECT_EQ(names(line), others);
        while (line.pop_front() != nullptr) {
        }
    }
}

TEST_F(LinkedList, TellsWhoIsInAListAndWhoIsAlone) {
    EXPECT_FALSE(linked_list<guest>::is_linked(a));
    line.push_back(a);
    EXPECT_TRUE(linked_list<guest>::is_linked(a));
    EXPECT_TRUE(linked_list<guest>::is_alone(a));
    line.push_back(b);
    EXPECT_FALSE(linked_list<guest>::is_alone(a));
    line.remove(b);
    EXPECT_TRUE(linked_list<guest>::is_alone(a));
    line.remove(a);
    EXPECT_TRUE(line.empty());
}

TEST_F(LinkedList, TakesAllOfAnotherListBehindItsOwn) {
    linked_list<guest> others;
    line.append(others);
    EXPECT_TRUE(line.empty());
    line.push_back(a);
    others.push_back(b);
    others.push_back(c);
    line.append(others);
    EXPECT_TRUE(others.empty());
    EXPECT_EQ(names(line), "abc");
    line.remove(c);
    EXPECT_EQ(line.back(), &b);
    others.append(line);
    EXPECT_EQ(names(others), "ab");
}

TEST_F(LinkedList, OfABaseIsAnotherOne) {
    linked_list<carriage, plain_link> train;
    train.push_back(a);
    line.push_back(a);
    train.remove(a);
    EXPECT_EQ(names(line), "a");
}

using LinkedListDeathTest = LinkedList;

TEST_F(LinkedListDeathTest, RefusesANodeThatIsInOneAlready) {
    line.push_back(a);
    EXPECT_DEATH(line.push_back(a), "one list at a time");
}

struct LinkedChain : LinkedList {
    linked_chain<guest> chain;

    std::string pop_all() {
        std::string all;
        while (guest const* const g = chain.pop_front()) all += g->name();
        return all;
    }
};

TEST_F(LinkedChain, IsFirstInFirstOut) {
    EXPECT_TRUE(chain.empty());
    EXPECT_FALSE(chain.has_one());
    chain.push_back(a);
    EXPECT_TRUE(chain.has_one());
    chain.push_back(b);
    EXPECT_FALSE(chain.empty());
    EXPECT_FALSE(chain.has_one());
    EXPECT_EQ(pop_all(), "ab");
    EXPECT_TRUE(chain.empty());
}

TEST_F(LinkedChain, TakesANodeInFront) {
    chain.push_front(b);
    chain.push_back(c);
    chain.push_front(a);
    EXPECT_EQ(pop_all(), "abc");
}

TEST_F(LinkedChain, CanBeFilledAgain) {
    chain.push_back(a);
    EXPECT_EQ(pop_all(), "a");
    chain.push_back(b);
    chain.push_back(a);
    EXPECT_EQ(pop_all(), "ba");
}

TEST_F(LinkedChain, LeavesANodeThatHasGoneFreeToBeLinked) {
    chain.push_back(a);
    chain.push_back(b);
    chain.push_back(c);
    while (guest* const g = chain.pop_front()) line.push_front(*g);
    EXPECT_EQ(names(line), "cba");
}

}  // namespace
